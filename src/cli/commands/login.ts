import { dirname, join } from "node:path";
import type { Command } from "commander";
import {
  type Context,
  type Contexts,
  chosenContext,
  readContexts,
  withContext,
  writeContexts,
} from "../auth/contexts.ts";
import { type IssuerLogin, LOGIN_LIMIT, logIn, loginFrom, revoke, subjectOf, textOf } from "../auth/login.ts";
import { examples, type GlobalOptions, type Registrar } from "../run/run-command.ts";
import type { CliDeps } from "../shell/deps.ts";
import { CommandFailure, EXIT, usageFailure } from "../shell/exit.ts";

type Options = GlobalOptions & { readonly issuer?: string; readonly clientId?: string; readonly scope?: string };

/** With `offline_access`, issuers give a token that renews the login. */
const SCOPE = "openid offline_access";

/** `gangway login`: a person logs in with a browser, on this machine or another one. */
export function registerLogin({ program, deps, finish }: Registrar): void {
  program
    .command("login")
    .description("Log in at an issuer of OpenID Connect with a browser. Calls of the context show your token then.")
    .option("--issuer <url>", "the issuer (default: that of the context's last login)")
    .option("--client-id <id>", "a client of the issuer for programs without a secret (default: likewise)")
    .option("--scope <names>", `what to ask the issuer for (default: likewise, else "${SCOPE}")`)
    .addHelpText(
      "after",
      examples("gangway login --issuer https://login.example.com --client-id gangway", "gangway --context prod login"),
    )
    .action(async (_options: object, command: Command) => {
      deps.listen();
      const options = command.optsWithGlobals<Options>();
      const { contexts, name, context, path } = await contextOf(options, deps);
      const before = await loginIn(path, deps);
      const issuer = options.issuer ?? before?.issuer;
      const clientId = options.clientId ?? before?.clientId;
      if (issuer === undefined || clientId === undefined)
        throw usageFailure(`context ${name} has no login yet: give --issuer and --client-id`);
      const scope = options.scope ?? before?.scope ?? SCOPE;
      const login = await logIn({ issuer, clientId, scope }, { signal: deps.signal, onCode });
      await deps.writePrivateFile(path, textOf(login));
      const security = { ...context.security, tokenFile: path };
      await writeContexts(deps.configFile, withContext(contexts, name, { ...context, security }));
      deps.stdout(`logged in at ${issuer} as ${subjectOf(login)}; context ${name} shows your token\n`);
      finish(EXIT.ok);
    });

  function onCode({ url, code }: { readonly url: string; readonly code: string }): void {
    deps.stderr(`open ${url}\nand check that it shows the code ${code}\n`);
  }
}

/** `gangway logout`: the tokens of a login are removed here, and revoked at the issuer. */
export function registerLogout({ program, deps, finish }: Registrar): void {
  program
    .command("logout")
    .description("End the login of the context: remove its tokens, and tell the issuer")
    .addHelpText("after", examples("gangway logout", "gangway --context prod logout"))
    .action(async (_options: object, command: Command) => {
      const { contexts, name, context, path } = await contextOf(command.optsWithGlobals<Options>(), deps);
      const login = await loginIn(path, deps);
      if (login === null) throw usageFailure(`context ${name} has no login`);
      await deps.removeFile(path);
      const { tokenFile } = context.security;
      const security = { ...context.security, tokenFile: tokenFile === path ? "" : tokenFile };
      await writeContexts(deps.configFile, withContext(contexts, name, { ...context, security }));
      await revoke(login).catch((error: unknown) => {
        if (!(error instanceof CommandFailure)) throw error;
        deps.stderr(`warning: the issuer was not told: ${error.message.replace(/^error: /, "")}\n`);
      });
      deps.stdout(`logged out of context ${name}\n`);
      finish(EXIT.ok);
    });
}

/** The chosen context, and the file of its login. */
async function contextOf(
  options: GlobalOptions,
  { configFile }: Pick<CliDeps, "configFile">,
): Promise<{
  readonly contexts: Contexts;
  readonly name: string;
  readonly context: Context;
  readonly path: string;
}> {
  const contexts = await readContexts(configFile);
  const name = options.context ?? contexts.current;
  const context = chosenContext(contexts, options.context);
  if (context === null)
    throw usageFailure('a login belongs to a context: make one with "gangway context set NAME --address HOST:PORT"');
  return { contexts, name, context, path: join(dirname(configFile.path), "logins", `${name}.json`) };
}

async function loginIn(path: string, { readFile }: Pick<CliDeps, "readFile">): Promise<IssuerLogin | null> {
  return loginFrom(await readFile(path, LOGIN_LIMIT).catch(() => ""));
}
