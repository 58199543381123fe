import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, it } from "vitest";
import { readImports } from "../support/imports.ts";

// Every message that stands in the sources as a text: of errors, of warnings, and of what the
// command line says. The forms of whole messages are in test/errors/message-forms.test.ts.

const root = fileURLToPath(new URL("../..", import.meta.url));
/**
 * What takes a message: constructors of errors, and these calls. What the Redis in memory replies has
 * Redis's own words, and Lua's.
 */
const TAKES =
  /^(?!RedisError|LuaError)(?:\w*Error|NotReached)$|(?:^|\.)(?:warn|fail|say|detail|bad|reportJson)$/;

interface Text {
  readonly place: string;
  readonly text: string;
}

/** The texts that such calls are given, with a placeholder for what is put in. */
function textsOf(file: string, source: string): Text[] {
  const parsed = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const texts: Text[] = [];
  const add = (node: ts.Node, text: string): void => {
    const { line } = parsed.getLineAndCharacterOfPosition(node.getStart());
    texts.push({ place: `${file}:${line + 1}`, text });
  };
  const visit = (node: ts.Node, isMessage: boolean): void => {
    if (isMessage && ts.isStringLiteralLike(node)) add(node, node.text);
    if (isMessage && ts.isTemplateExpression(node))
      add(node, node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join(""));
    const takes =
      (ts.isNewExpression(node) || ts.isCallExpression(node)) && TAKES.test(node.expression.getText());
    // A function inside is other code.
    const goesOn = isMessage && !ts.isFunctionLike(node);
    ts.forEachChild(node, (child) =>
      visit(child, goesOn || (takes && child !== (node as ts.NewExpression).expression)),
    );
  };
  visit(parsed, false);
  return texts;
}

const VAGUE = /\b(nobody|somebody|whoever|in vain|for ever)\b/i;
const SENTENCES = /[a-z)`'"]\. [A-Z]/;
const SCRIPT = /\b(handoff|counted|election|once|quorum|spin|redisson|deadlocks)\/[a-z]/;

const faulty = (texts: readonly Text[]): string[] =>
  texts.flatMap(({ place, text }) =>
    VAGUE.test(text) || SENTENCES.test(text) || SCRIPT.test(text) ? [`${place}: ${text}`] : [],
  );

it("every message names the actor, in one sentence, and no script", () => {
  const files = [...readImports(root, "src").keys()].filter((file) => !file.endsWith(".generated.ts"));
  const texts = files.flatMap((file) => textsOf(file, readFileSync(`${root}/${file}`, "utf8")));
  expect(texts.length).toBeGreaterThan(150);
  expect(faulty(texts)).toEqual([]);
});

it.each([
  'throw new LockError("LOCK_LOST", name, quote(name) + " is held by somebody else");',
  'warn("It is late. Wait longer.");',
  'output.say(isLate ? "Nobody waits" : "");',
  'fail("no reply to handoff/first-acquire within " + ms);',
])("the test detects a message that does not: %s", (code) => {
  expect(faulty(textsOf("planted.ts", code))).not.toEqual([]);
  expect(faulty(textsOf("planted.ts", `f(${JSON.stringify("Nobody waits")});`))).toEqual([]);
});
