import { Argument } from "commander";
import { examples, type Registrar } from "../run/run-command.ts";
import { EXIT } from "../shell/exit.ts";

/** Each asks `gangway __complete` for the words, and falls back to the names of files. */
const SCRIPTS: Readonly<Record<string, string>> = {
  // Bash breaks words at : and =, and replaces only what comes after them.
  bash: `_gangway() {
  local line="\${COMP_LINE:0:COMP_POINT}" typed="\${COMP_WORDS[COMP_CWORD]}" kept="" words last
  read -ra words <<< "$line"
  if [[ "$line" == *[[:space:]] ]]; then words+=(""); fi
  last="\${words[\${#words[@]}-1]}"
  if [[ "$typed" == [:=] ]]; then typed=""; fi
  if [[ "$last" == *"$typed" ]]; then kept="\${last:0:\${#last}-\${#typed}}"; fi
  local IFS=$'\\n'
  COMPREPLY=($(gangway __complete "\${words[@]:1}" 2>/dev/null))
  COMPREPLY=("\${COMPREPLY[@]#"$kept"}")
  if [[ "\${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2>/dev/null; fi
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
