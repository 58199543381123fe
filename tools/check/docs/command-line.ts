import { COMMANDS } from "../../../src/tools/cli/commands.ts";
import { EXIT } from "../../../src/tools/cli/exit-codes.ts";
import { commandHelp, commonHelp, programHelp } from "../../../src/tools/cli/help.ts";
import { readText, splitCode, tableRows } from "./markdown.ts";

const PAGE = "docs/command-line.md";

/**
 * A block of the page that shows the program's output: ```text help=run, ```text help for the
 * program itself, and ```text help=common for the flags of every command. The block of a command
 * leaves these flags out, and names the flags that an earlier command explains.
 */
const HELP = /\bhelp(?:=(\w+))?$/;

/** The program itself, in a block of the page. */
const COMMON = "common";

function helpOf(name: string | undefined): string | undefined {
  if (name === undefined) return programHelp(COMMANDS);
  if (name === COMMON) return commonHelp();
  const at = COMMANDS.findIndex((command) => command.name === name);
  const found = COMMANDS[at];
  if (found === undefined) return undefined;
  const earlier = COMMANDS.slice(0, at).flatMap(({ flags }) => Object.values(flags));
  const own = Object.entries(found.flags).filter(([, flag]) => !earlier.includes(flag));
  const again = Object.keys(found.flags).filter((flag) => !own.some(([name]) => name === flag));
  const others = again.map((flag) => `--${flag}`).join(", ");
  return commandHelp({ ...found, flags: Object.fromEntries(own) }).replace(
    `\n\n${commonHelp()}`,
    others === "" ? "" : `\n\nAs above: ${others}`,
  );
}

/** The page shows the help of every command as the program prints it, and every exit code. */
export function checkCommandLine(root: string): string[] {
  const page = readText(root, PAGE);
  const shown = new Set<string | undefined>();
  const problems = splitCode(page).blocks.flatMap(({ info, code, line }) => {
    const match = HELP.exec(info);
    if (!match) return [];
    shown.add(match[1]);
    return helpOf(match[1]) === code
      ? []
      : [`${PAGE}:${line}: differs from holdfast help: npm run check:docs -- --fix`];
  });
  const missing = [undefined, COMMON, ...COMMANDS.map(({ name }) => name)].filter((name) => !shown.has(name));
  const codes = tableRows(page)
    .map(([first = ""]) => first)
    .join(" ");
  const untold = Object.values(EXIT).filter((code) => !new RegExp(`\\b${code}\\b`).test(codes));
  return [
    ...problems,
    ...missing.map((name) => `${PAGE}: does not show holdfast help${name === undefined ? "" : ` ${name}`}`),
    ...untold.map((code) => `${PAGE}: no row of a table tells of the exit code ${code}`),
  ];
}

/** The page with the program's help filled in. */
export function embedHelp(root: string): string {
  return readText(root, PAGE).replace(
    /^(```text help(?:=(\w+))?\n).*?^```$/gms,
    (whole, head: string, name: string | undefined) => {
      const help = helpOf(name);
      return help === undefined ? whole : `${head}${help}\n\`\`\``;
    },
  );
}
