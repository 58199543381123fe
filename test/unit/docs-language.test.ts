import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkLanguage, pronouns } from "../../tools/check/docs/language.ts";
import { wordHints } from "../../tools/check/docs/words.ts";

// The check of the language, which `npm run check:docs` runs over all texts, this file included: so
// the word that it refuses is written as % here.

const planted = (text: string): string => text.replaceAll("%", "who");

describe("the check refuses a pronoun in the place of a noun", () => {
  it.each([
    "% waits is woken.",
    "It is released. % holds it is told.",
    "The lock goes on: % waited longest gets it.",
    "A caller leaves, % had waited.",
    "Nobody is skipped (% leaves, loses the place).",
    "It goes to % comes first.",
    "A message for % waits.",
    "The next of % is left.",
    "%ever comes first has it.",
    "The client to %m it was granted.",
    "Is it free? % asks is told.",
    "It goes to\n% comes first.",
    "*% waits* is woken.",
  ])("%s", (text) => expect(pronouns(planted(text))).toHaveLength(1));
});

describe("the check accepts a question, a relative clause and a quotation", () => {
  it.each([
    "% holds it?",
    "It is held. (% holds it?)",
    "The caller % waits is woken.",
    "inspect() tells % holds it.",
    'The word "%" says nothing.',
    "It asks: % is there?",
  ])("%s", (text) => expect(pronouns(planted(text))).toEqual([]));
});

describe("npm run check:docs reads", () => {
  let root: string;

  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), "holdfast-language-"));
    for (const [path, text] of Object.entries(FILES)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), planted(text));
    }
  });
  afterAll(() => rm(root, { recursive: true, force: true }));

  it("Markdown, comments and messages, but no code, and names the lines", () => {
    const places = checkLanguage(root).map((problem) => problem.slice(0, problem.indexOf(": ")));
    expect(places.sort()).toEqual([
      "README.md:10",
      "README.md:4",
      "README.md:9",
      "docs/page.md:1",
      "lua/spin/take.lua:3",
      "proof/model.pml:2",
      "proof/model.pml:4",
      "src/code.ts:10",
      "src/code.ts:11",
      "src/code.ts:12",
      "src/code.ts:2",
      "src/code.ts:3",
    ]);
  });

  it("users' pages for words to replace, but no code and no maintainers' page, and gives a hint for each", () => {
    expect(wordHints(root)).toEqual([
      'docs/words.md:2: "nobody", plainer: no process, another caller …',
      'docs/words.md:1: "is told", plainer: is notified, receives',
      'docs/words.md:4: "behind", plainer: after',
      'docs/words.md:6: "Of a", plainer: begin with the subject',
    ]);
  });
});

const FILES = {
  "README.md": `# Title

A sentence that goes on in the next line. For
%ever reads it.

\`\`\`ts
// %ever: in a block of code
\`\`\`
- % begins an item
| a cell | % begins another |
\`% as code\`, and the one % reads it
`,
  "docs/page.md": "# %ever",
  "docs/words.md": `A holder is told by
nobody. It is \`nobody\` in code, and a lock that
nobody else has.
- It is free behind the loss; the button is behind the table.

Of a lock it is known. The end of a lock is known.
`,
  "docs/protocol.md": "Nobody waits in vain.",
  "lua/spin/take.lua": `local x = 1
-- A comment that goes on for
-- % reads it.
return x -- the caller % asks
`,
  "src/code.ts": `/**
 * %ever reads this.
 * @param name for % asks
 *
 * @example
 * \`\`\`ts
 * // %ever: code
 */
// Two lines that belong together, for
// % reads them.
const one = 1; // % begins behind code
throw new Error(\`the lock \${one}: % has it knows\`);
const key = "%";
`,
  "proof/model.pml": `/* A model.
   %ever is in it
   has a turn. */
int x; // % is in it
`,
  "node_modules/other/README.md": "%ever",
};
