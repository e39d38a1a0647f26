import { resolve } from "node:path";
import type { Command } from "commander";
import type { Security } from "../../config/client-config.ts";
import { chosenContext, readContexts, withContext, writeContexts } from "../auth/contexts.ts";
import { mergeSecurity, NO_SECURITY } from "../auth/security.ts";
import { renderTable } from "../output/table.ts";
import { addressesOf, examples, type GlobalOptions, type Registrar, securityOf } from "../run/run-command.ts";
import { EXIT, usageFailure } from "../shell/exit.ts";

/** `gangway context` and its commands. They change the configuration file, and call no service. */
export function registerContext(registrar: Registrar): void {
  const program = registrar.program
    .command("context")
    .description("List, set and choose the services that commands call by a name")
    .addHelpText(
      "after",
      examples("gangway context set prod --address gangway-a:7443,gangway-b:7443 -n nlp", "gangway context use prod"),
    );
  const group = { ...registrar, program };
  registerList(group);
  registerSet(group);
  registerUse(group);
  registerDelete(group);
}

function registerList({ program, deps, finish }: Registrar): void {
  program
    .command("list")
    .alias("ls")
    .description("List the contexts; * marks the current one")
    .addHelpText("after", examples("gangway context list"))
    .action(async () => {
      const { current, contexts } = await readContexts(deps.configFile);
      const rows = [...contexts].map(([name, { addresses, namespace, security }]) => [
        name === current ? "*" : " ",
        name,
        addresses.join(","),
        namespace,
        securityText(security),
      ]);
      const columns = ["CURRENT", "NAME", "ADDRESSES", "NAMESPACE", "SECURITY"].map((title) => ({ title }));
      if (rows.length === 0) deps.stderr("no contexts\n");
      else deps.stdout(`${renderTable(columns, rows, { columns: null, color: false }).join("\n")}\n`);
      finish(EXIT.ok);
    });
}

function registerSet({ program, deps, finish }: Registrar): void {
  program
    .command("set")
    .alias("add")
    .description("Make a context, or change it; omitted options change nothing. The first one is the current one.")
    .argument("<name>", "name of the context")
    .addHelpText(
      "after",
      examples(
        "gangway context set prod --address gangway:7443 --namespace nlp",
        "gangway context set prod --ca-file ca.crt --client-cert me.crt --client-key me.key",
      ),
    )
    .action(async (name: string, _options: object, command: Command) => {
      const options = command.optsWithGlobals<GlobalOptions>();
      const { address, namespace } = options;
      const given = absolutePaths(securityOf(options));
      const isSecured = Object.values(given).some((value) => value !== false && value !== "");
      if (address === undefined && namespace === undefined && !isSecured)
        throw usageFailure("there is nothing to set; give --address, --namespace, or an option of security");
      const before = await readContexts(deps.configFile);
      const old = before.contexts.get(name) ?? { addresses: [], namespace: "", security: NO_SECURITY };
      const context = {
        addresses: address === undefined ? old.addresses : addressesOf(address, "--address"),
        namespace: namespace ?? old.namespace,
        // A context that gets another address gets its security anew: a secret is not for whoever is there.
        security: mergeSecurity(given, address === undefined ? old.security : NO_SECURITY),
      };
      await writeContexts(deps.configFile, withContext(before, name, context));
      deps.stdout(`context ${name} set\n`);
      finish(EXIT.ok);
    });
}

function securityText({ tls, caFile, clientCertFile, tokenFile }: Security): string {
  const encrypts = tls || caFile !== "" || clientCertFile !== "";
  const words = { TLS: encrypts, certificate: clientCertFile !== "", token: tokenFile !== "" };
  return Object.entries(words)
    .flatMap(([word, holds]) => (holds ? [word] : []))
    .join(", ");
}

/** Contexts are used in every folder. */
function absolutePaths(security: Security): Security {
  const absolute = (path: string) => (path === "" ? "" : resolve(path));
  const { caFile, clientCertFile, clientKeyFile, tokenFile } = security;
  return {
    ...security,
    caFile: absolute(caFile),
    clientCertFile: absolute(clientCertFile),
    clientKeyFile: absolute(clientKeyFile),
    tokenFile: absolute(tokenFile),
  };
}

function registerUse({ program, deps, finish }: Registrar): void {
  program
    .command("use")
    .description("Make a context the current one")
    .argument("<name>", "name of the context")
    .addHelpText("after", examples("gangway context use prod"))
    .action(async (name: string) => {
      const before = await readContexts(deps.configFile);
      chosenContext(before, name);
      await writeContexts(deps.configFile, { ...before, current: name });
      deps.stdout(`context ${name} is the current one\n`);
      finish(EXIT.ok);
    });
}

function registerDelete({ program, deps, finish }: Registrar): void {
  program
    .command("delete")
    .description("Delete a context")
    .argument("<name>", "name of the context")
    .addHelpText("after", examples("gangway context delete prod"))
    .action(async (name: string) => {
      const before = await readContexts(deps.configFile);
      chosenContext(before, name);
      const contexts = new Map([...before.contexts].filter(([one]) => one !== name));
      await writeContexts(deps.configFile, { current: before.current === name ? "" : before.current, contexts });
      deps.stdout(`context ${name} deleted\n`);
      finish(EXIT.ok);
    });
}
