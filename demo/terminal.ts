const { NO_COLOR = "" } = process.env;
const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };

/** Can lines be redrawn on this terminal? */
export const isTerminal = process.stdout.isTTY === true;

/** The text in this colour; as it is when nobody would see it, or wants to (https://no-color.org). */
export function paint(style: keyof typeof CODES, text: string): string {
  return isTerminal && NO_COLOR === "" ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text;
}

/** A bar of up to `width` characters, with a resolution of an eighth of a character. */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share)) * width * 8);
  const rest = " ▏▎▍▌▋▊▉".charAt(eighths % 8);
  return "█".repeat(Math.floor(eighths / 8)) + rest.trim();
}

/** What a narrow terminal shows. */
const COLUMNS = 80;

/** The text in lines of up to 79 columns: the first one after `first`, the others after `indent`. */
export function wrap(text: string, indent = "  ", first = indent): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(" ")) {
    const start = lines.length === 0 ? first : indent;
    if (line === start) line += word;
    else if (line.length + 1 + word.length < COLUMNS) line += ` ${word}`;
    else {
      lines.push(line);
      line = indent + word;
    }
  }
  return [...lines, line];
}

export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}
