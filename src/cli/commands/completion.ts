import { Argument } from "commander";
import { EXIT } from "../exit.ts";
import { examples, type Registrar } from "../run-command.ts";

/** Each asks `gangway __complete` for the words, and falls back to the names of files. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_gangway() {
  local IFS=$'\\n'
  COMPREPLY=($(gangway __complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _gangway gangway
`,
  zsh: `#compdef gangway
_gangway() {
  local -a found
  found=("\${(@f)$(gangway __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${found[1]}" ]]; then compadd -- "\${found[@]}"; else _files; fi
}
compdef _gangway gangway
`,
  fish: `complete -c gangway -a '(gangway __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};

export function registerCompletion({ program, deps, finish }: Registrar): void {
  program
    .command("completion")
    .description("Print the script by which a shell completes commands, options and names")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText(
      "after",
      examples(
        "source <(gangway completion bash)",
        "source <(gangway completion zsh)",
        "gangway completion fish | source",
      ),
    )
    .action((shell: string) => {
      deps.stdout(SCRIPTS[shell] ?? "");
      finish(EXIT.ok);
    });
}
