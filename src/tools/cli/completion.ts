import { quoteWhole } from "../../util/quote.ts";
import { type Flag, inWords } from "./args.ts";
import { didYouMean } from "./closest.ts";
import { COMMON, type Command, command } from "./command.ts";
import { EXIT, UsageError } from "./exit-codes.ts";

/** `commands`: read when it runs, because this command is one of them. */
export const completion = (commands: () => readonly Command[]): Command =>
  command(
    {
      name: "completion",
      summary: "prints a completion script for a shell",
      usage: ["completion <bash|zsh|fish>"],
      examples: [
        ["source <(holdfast completion bash)", "in ~/.bashrc"],
        ["source <(holdfast completion zsh)", "in ~/.zshrc"],
        ["holdfast completion fish > ~/.config/fish/completions/holdfast.fish", "for fish"],
      ],
      flags: {},
    },
    async ({ positionals: [shell], output }) => {
      const write = SHELLS[shell as keyof typeof SHELLS];
      if (!write) throw new UsageError(unknownShell(shell));
      for (const line of write(commands()).split("\n")) output.print(line);
      return EXIT.ok;
    },
  );

function unknownShell(shell: string | undefined): string {
  const shells = Object.keys(SHELLS);
  const typed = shell === undefined ? "." : `, not ${quoteWhole(shell)}${didYouMean(shell, shells)}`;
  return `holdfast completion takes ${inWords(shells)}${typed}`;
}

const HELP = "prints this program's help, or that of a command";
const flagsOf = ({ flags }: Command) => Object.keys({ ...flags, ...COMMON }).map((name) => `--${name}`);
const names = (commands: readonly Command[]) => [...commands.map(({ name }) => name), "help"].join(" ");

/** The values of a flag that takes one of a few words. */
const wordsOf = ({ shows }: Flag<unknown>): string =>
  shows?.includes("|") ? shows.slice(1, -1).replaceAll("|", " ") : "";

/**
 * After the command's name flags, after a flag its words, and after "--" what the shell itself
 * would complete.
 */
function bash(commands: readonly Command[]): string {
  return `_holdfast() {
  local word=\${COMP_WORDS[COMP_CWORD]} i
  for ((i = 1; i < COMP_CWORD; i++)); do
    [[ \${COMP_WORDS[i]} == -- ]] && { COMPREPLY=($(compgen -c -f -- "$word")); return; }
  done
  local before=\${COMP_WORDS[COMP_CWORD - 1]} flag=
  [[ $word == = ]] && word=
  [[ $before == = ]] && before=\${COMP_WORDS[COMP_CWORD - 2]}
  [[ $word == --*=* ]] && { before=\${word%%=*}; flag=$before=; word=\${word#*=}; }
  case \${COMP_WORDS[1]}:$before in
${commands.flatMap(choices).join("\n")}
    completion:completion) COMPREPLY=($(compgen -W "${Object.keys(SHELLS).join(" ")}" -- "$word")); return ;;
  esac
  if ((COMP_CWORD == 1)); then COMPREPLY=($(compgen -W "${names(commands)}" -- "$word")); return; fi
  case \${COMP_WORDS[1]} in
${commands.map((one) => `    ${one.name}) COMPREPLY=($(compgen -W "${flagsOf(one).join(" ")}" -- "$word")) ;;`).join("\n")}
    help) COMPREPLY=($(compgen -W "${names(commands)}" -- "$word")) ;;
  esac
}
complete -F _holdfast holdfast`;
}

const choices = ({ name, flags }: Command): string[] =>
  Object.entries(flags).flatMap(([long, one]) => {
    const words = wordsOf(one);
    return words
      ? [`    ${name}:--${long}) COMPREPLY=($(compgen -P "$flag" -W "${words}" -- "$word")); return ;;`]
      : [];
  });

/** zsh splits no word at "=", and may not have initialised its completion yet. */
const zsh = (commands: readonly Command[]): string =>
  `(( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit -i; }
autoload -U +X bashcompinit && bashcompinit
${bash(commands)}`;

function fish(commands: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replace(/['\\]/g, "\\$&")}'`;
  const line = (where: string, rest: string) => `complete -c holdfast -n ${quoted(where)} ${rest}`;
  const first = [...commands.map(({ name, summary }) => [name, summary] as const), ["help", HELP] as const];
  return [
    `function __holdfast_at
  set -l words (commandline -opc)
  not contains -- -- $words; and test "$words[2]" = "$argv[1]"
end
function __holdfast_command
  set -l words (commandline -opc) (commandline -ct)
  complete -C (string join -- ' ' $words[(math (contains -i -- -- $words) + 1)..-1])
end
complete -c holdfast -f`,
    ...first.map(([name, summary]) => line("__holdfast_at", `-a ${name} -d ${quoted(summary)}`)),
    line("__holdfast_at help", `-a ${quoted(names(commands))}`),
    line("__holdfast_at completion", `-a ${quoted(Object.keys(SHELLS).join(" "))}`),
    line("contains -- -- (commandline -opc)", "-a '(__holdfast_command)'"),
    ...commands.flatMap(({ name, flags }) =>
      Object.entries({ ...flags, ...COMMON }).map(([long, one]) => {
        const { short, shows, help } = one;
        const words = wordsOf(one);
        const value = shows === null ? "" : words ? ` -x -a ${quoted(words)}` : " -x";
        const letter = short === null ? "" : ` -s ${short}`;
        return line(
          `__holdfast_at ${name}`,
          `-l ${long}${letter}${value} -d ${quoted(help.split(/[.;:]/)[0] ?? help)}`,
        );
      }),
    ),
  ].join("\n");
}

const SHELLS = { bash, zsh, fish };
