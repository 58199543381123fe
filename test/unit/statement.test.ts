import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Hold } from "../../src/core/lease/hold.ts";
import type { Commands } from "../../src/redis/commands.ts";
import { Keys } from "../../src/redis/keys.ts";
import { ScriptKeys } from "../../src/redis/script.ts";
import { micros, PreparedStatement, Statement } from "../../src/redis/statement.ts";
import { HandoffKind } from "../../src/wires/handoff.ts";

const scriptOf = (lua: string) => ({ name: "test", lua, sha: createHash("sha1").update(lua).digest("hex") });
const ONE = { isCluster: false };
const SCRIPT = scriptOf('return "é"');
const KEYS = new ScriptKeys("schlüssel:", ["{a\r\n$1}", "{a\r\n$1}:queue"]);
const TIMES = ["1795900000000000", "1795900000000001"] as const;

/** The words of a command in Redis's protocol. */
function wordsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  const lineAt = (at: number): [line: string, next: number] => {
    const end = bytes.indexOf("\r\n", at);
    return [bytes.toString("utf8", at, end), end + 2];
  };
  let [line, at] = lineAt(0);
  const words = Array.from({ length: Number(line.slice(1)) }, () => {
    const [length, from] = lineAt(at);
    const to = from + Number(length.slice(1));
    [line, at] = [length, to + 2];
    return bytes.toString("utf8", from, to);
  });
  expect(at).toBe(bytes.length);
  return words;
}

describe.each(["holdfast:client:a:1", "schlüssel:€:1"])("a statement prepared for the hold %s", (first) => {
  const args = [first, 30_000, TIMES[0], "1 3000 0 "];
  const prepared = new PreparedStatement(ONE, SCRIPT, KEYS, args, 2);
  const next = first.replace("1", "2");
  const others = [next, "30000", TIMES[1], "1 3000 0 "];

  it("is the same command for another hold and time as one that is put together", () => {
    const whole = new Statement(ONE, SCRIPT, KEYS, others);
    expect(prepared.text(next, Number(TIMES[1]))).toBe(whole.text("", 0));
    expect(prepared.evalText(next, Number(TIMES[1]))).toBe(whole.evalText("", 0));
    expect(prepared.argv(next, Number(TIMES[1]))).toEqual([next, 30_000, TIMES[1], "1 3000 0 "]);
  });

  it("has the words that Redis is to read, by the script's hash and by its text", () => {
    expect(wordsOf(prepared.text(next, Number(TIMES[1])))).toEqual([
      "evalsha",
      SCRIPT.sha,
      "2",
      ...KEYS.full,
      ...others,
    ]);
    expect(wordsOf(prepared.evalText(next, Number(TIMES[1])))).toEqual([
      "eval",
      SCRIPT.lua,
      "2",
      ...KEYS.full,
      ...others,
    ]);
  });
});

it("a statement with bytes, or of a script of the application, is no text", () => {
  expect(new Statement(ONE, SCRIPT, KEYS, ["a", 1]).isText).toBe(true);
  expect(new Statement(ONE, SCRIPT, KEYS, ["a", Buffer.from("b")]).isText).toBe(false);
  expect(new Statement(ONE, { ...SCRIPT, isForeign: true }, KEYS, ["a"]).isText).toBe(false);
});

it("in a Cluster a statement has the script for sharded messages", () => {
  const { script } = new Statement(
    { isCluster: true },
    scriptOf('redis.call("PUBLISH", KEYS[1], "")'),
    KEYS,
    [],
  );
  expect(script.lua).toBe('redis.call("SPUBLISH", KEYS[1], "")');
  expect(script.sha).toBe(scriptOf(script.lua).sha);
});

it("a time in µs has the digits that JavaScript gives it", () => {
  const times = [0, 1, 999_999_999_999_999, 1e15, 1e15 + 1, 1_795_900_000_000_000, 1_795_900_012_345_678];
  for (const time of [...times, Number.MAX_SAFE_INTEGER]) expect(micros(time)).toBe(`${time}`);
});

it("a release with a token of other digits than the last one, as a forged grant gives it, is a whole command", () => {
  const texts: string[] = [];
  const commands = {
    isCluster: false,
    keys: new Keys("", false),
    keysOf: (names: readonly string[]) => new ScriptKeys("", names),
    send: (statement: Statement, _decode: unknown, _callback: unknown, hold: string, number: number) =>
      texts.push(statement.text(hold, number)),
  } as unknown as Commands;
  const kind = new HandoffKind(commands, null, false, 16, 3_000);
  const callback = { answered: () => {}, failed: () => {} };
  const tokens = [5, 1_795_900_000_000_000, 1_795_900_000_000_001, 5];
  for (const token of tokens) kind.release(Object.assign(new Hold("a:1", "shop"), { token }), callback);
  expect(texts.map((text) => wordsOf(text).slice(-2))).toEqual(tokens.map((token) => ["a:1", `${token}`]));
});
