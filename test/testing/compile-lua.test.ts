import { describe, expect, it } from "vitest";
import { compileScripts, includeMark } from "../../tools/build/compile-lua.mjs";

// What the compiler of lua/ refuses is an error of the build. Compiled scripts give Lua's results in
// lua-runtime.test.ts.

const compile = (text: string, parts: Readonly<Record<string, string>> = {}): string =>
  compileScripts([{ name: "one", sha: "1", text }], new Map(Object.entries(parts)));

/** Two scripts that share a part, so its variables are those of the module. */
const shared = (first: string, part: string): string =>
  compileScripts(
    [
      { name: "first", sha: "1", text: first },
      { name: "second", sha: "2", text: `local lock\n${includeMark("part.lua")}\nreturn lock` },
    ],
    new Map([["part.lua", part]]),
  );

describe("the compiler refuses", () => {
  it.each([
    ["a global variable that is set", "x = 1", "nothing declares x"],
    ["a global variable that is read", "return x", "nothing declares x"],
    ["a global function", "function f() return 1 end\nreturn f()", "global function"],
    ["a function that Redis's Lua has, and the run time lacks", "return pcall(tostring)", "declares pcall"],
    ["a loop over pairs", "for k in pairs(KEYS) do return k end", "nothing declares pairs"],
    ["a function of a library that the run time lacks", 'return string.rep("x", 3)', "string.rep"],
    ["one that is called by another name", "local rep = string.rep\nreturn rep(1, 2)", "string.rep"],
    ["a function of redis that the memory lacks", "return redis.sha1hex(KEYS[1])", "redis.sha1hex"],
    ["gmatch outside a loop", 'local f = string.gmatch("a", "a")\nreturn f', "string.gmatch"],
    ["more arguments than the run time reads", 'return string.byte("abc", 1, 2)', "byte of 3 values"],
    ["a base", 'return tonumber("10", 2)', "tonumber of 2 values"],
    ["methods of texts", "local s = KEYS[1]\nreturn s:sub(1)", "the compiler has no"],
    ["powers", "return 2 ^ 3", "the compiler has no ^"],
    ["a loop that counts by a variable", "local s = 2\nfor i = 1, 3, s do return i end", "step"],
    ["a loop that counts down", "for i = 3, 1, -1 do return i end", "step"],
    ["values of a call that are not counted", "local function f(...) return 1 end\nreturn f()", "Vararg"],
    ["several values of a script", "return 1, 2", "return of several values"],
    ["a table of keys and places", 'return { 1, x = "y" }', "table with both keys and values"],
    ["a function without a name", "return (function() return 1 end)()", "the compiler has no"],
    [
      "a function of several values by another name",
      "local m = string.match\nreturn m(KEYS[1], 'a')",
      "other name of match",
    ],
    ["text beyond ASCII", 'return "é"', "ASCII only: é"],
    ["a syntax error", "return return", "lua/one"],
  ])("%s", (_, text, why) => {
    expect(() => compile(text)).toThrow(why);
  });

  it("a variable that hides one that parts share", () => {
    const part = 'lock = redis.call("GET", KEYS[1])';
    const mark = includeMark("part.lua");
    const hidden = `local lock\n${mark}\nif KEYS[1] then\nlocal lock = 1\n${mark}\nend\nreturn lock`;
    expect(() => shared(hidden, part)).toThrow("lua/first: lock hides a variable that parts share");
    const plain = `local lock\nif KEYS[1] then\n${mark}\nend\nreturn lock`;
    expect(shared(plain, part)).toContain("const part_part = () =>");
  });

  it("a variable beside an earlier one of its name that a function keeps", () => {
    const part = "lock = KEYS[1]";
    const mark = includeMark("part.lua");
    const inner = `if KEYS[2] then\nlocal lock\n${mark}\nf = function() return lock end\nend`;
    const kept = (later: string): string => `local f\n${inner}\nlocal lock = 1\n${later}\nreturn f()`;
    expect(() => shared(kept(mark), part)).toThrow("lua/first: a function has a variable lock, and parts");
    // One that no part uses has a variable of its own.
    expect(shared(kept(""), part)).toContain("let lock$1 = 1;");
  });

  it("a part that uses what its script does not declare", () => {
    const part = "held = 1";
    expect(() => shared(`local lock\n${includeMark("part.lua")}\nreturn lock`, part)).toThrow(
      "nothing declares held",
    );
  });

  it("a part beyond ASCII", () => {
    expect(() => compile(includeMark("part.lua"), { "part.lua": "-- ü\nreturn 1" })).toThrow("lua/part.lua");
  });
});

it("a part with one includer is compiled in place, and one with several once", () => {
  const text = `local lock\n${includeMark("part.lua")}\nreturn lock`;
  expect(compile(text, { "part.lua": "lock = 1" })).not.toContain("part_part");
  expect(shared(text, "lock = 1").split("const part_part")).toHaveLength(2);
});
