import { Redis } from "ioredis";
import { afterAll, describe, expect, it } from "vitest";
import * as L from "../../src/tools/testing/lua-runtime.ts";
import { compileScripts } from "../../tools/build/compile-lua.mjs";
import { seeded } from "../contract/seed.ts";
import { testUrl } from "../support/fixture.ts";

// Compiled Lua gives what Redis's Lua gives: each script runs in both. What the run time lacks, it
// refuses.

const redis = new Redis(testUrl());
afterAll(() => redis.disconnect());

interface Module {
  scriptOf(sha: string): () => unknown;
  runScript(main: () => unknown, api: object, keys: L.LuaTable, argv: L.LuaTable): unknown;
}

/** What the compiled script returns: texts, and lists of texts. */
function compiled(text: string, argv: readonly string[]): unknown {
  const code = compileScripts([{ name: "one", sha: "1", text }], new Map()).replace(/^export /gm, "");
  const module: Module = new Function("L", `${code}\nreturn { scriptOf, runScript };`)(L);
  const value = module.runScript(module.scriptOf("1"), {}, L.LuaTable.of([]), L.LuaTable.of(argv));
  return value instanceof L.LuaTable ? [...value.list] : value;
}

/** The same in Redis, with a character for each byte. */
const real = async (text: string, argv: readonly string[]): Promise<unknown> =>
  characters(await redis.callBuffer("EVAL", text, 0, ...argv));

const characters = (reply: unknown): unknown =>
  Array.isArray(reply) ? reply.map(characters) : Buffer.isBuffer(reply) ? reply.toString("latin1") : reply;

/** A script that says what several expressions are. */
const shown = (expressions: readonly string[]): string =>
  `local t = { 1, "two", 3.5 }
return { ${expressions.map((one) => `tostring(${one})`).join(", ")} }`;

it.each([
  [
    "numbers",
    [
      "1/3",
      "2/3",
      "1e15",
      "123456789012345",
      "-0.1",
      "1e-5",
      "0.0001",
      "1e100",
      "-1/0",
      "1/0",
      'tonumber("0") * -1',
    ],
  ],
  [
    "rounding",
    ["12345678901234.5", "12345678901235.5", "1700000000000050", "0.5", "2^2 and 1 or 2"].slice(0, 4),
  ],
  [
    "arithmetic",
    ['"10" + 5', '"0x10" * 1', "7 % 3", "-7 % 3", "7 % -3", "5.5 % 2", "1e300 * 1e10", '" 5 " - 1'],
  ],
  [
    "tonumber",
    [
      'tonumber("1e3")',
      'tonumber("")',
      'tonumber("5x")',
      'tonumber("0x1F")',
      'tonumber(" 7 ")',
      "tonumber(nil)",
      'tonumber(".5")',
      'tonumber("5.")',
      'tonumber("-")',
      'tonumber("1e")',
      'tonumber("- 1")',
      'tonumber("inf")',
      'tonumber(" -INF ")',
      'tonumber("infinity")',
      'tonumber("infinit")',
    ],
  ],
  [
    "types",
    ["type(nil)", "type(1)", 'type("")', "type({})", "type(tostring)", "type(1 == 2)", "nil == false"],
  ],
  [
    "conditions",
    ["0 and 1", '"" and 2', "nil or 3", "false and 4", "not nil", "not 0", "nil and nil", "false or nil"],
  ],
  [
    "comparisons",
    ['"a" < "b"', '"Z" < "a"', '"" < "a"', '"10" < "9"', "2 > 1", "1 >= 1", '1 == "1"', '"\\255" > "a"'],
  ],
  [
    "texts",
    ["1 .. 2", '1.5 .. "x"', '1e15 .. ""', '#"abc"', '#"\\0a"', 'string.lower("ÀbC")'.replace("À", "\\192")],
  ],
  [
    "sub",
    [
      'string.sub("hello", 2, 3)',
      'string.sub("hello", -3)',
      'string.sub("hello", -3, -2)',
      'string.sub("hello", 0)',
      'string.sub("hello", 4, 99)',
      'string.sub("hello", 4, 2)',
      'string.sub("hello", -99, 2)',
      'string.sub(12345, "2", 3)',
      'string.sub("hello", 6)',
    ],
  ],
  ["byte", ['string.byte("abc")', 'string.byte("abc", 2)', 'string.byte("abc", -1)', 'string.byte("\\200")']],
  [
    "tables",
    [
      "#t",
      "t[2]",
      "t[4]",
      't["2"]',
      "#{}",
      "#{ 1, 2 }",
      'table.concat(t, "-")',
      "table.concat({})",
      "({ a = 5 }).a",
      "t[1.5]",
    ],
  ],
  ["unpack", ["#{ unpack(t) }", "#{ unpack(t, 2) }", "#{ unpack(t, 2, 2) }", "#{ unpack(t, 3, 2) }"]],
  [
    "math",
    [
      "math.max(1, 3, 2)",
      "math.min(4, 2)",
      "math.ceil(1.2)",
      "math.ceil(-1.2)",
      "math.floor(-1.2)",
      "math.huge",
    ],
  ],
])("%s", async (_, expressions) => {
  const script = shown(expressions);
  expect(compiled(script, [])).toEqual(await real(script, []));
});

it.each([
  ['"%d"', ["5", "-5", "1.9", "-1.9", "9007199254740992"]],
  ['"%05d"', ["5", "-5", "123456"]],
  ['"%5d|"', ["5", "-5"]],
  ['"%.0f"', ["0.5", "1.5", "2.5", "-0.5", "1700000000000001", "1e22", "9007199254740993"]],
  ['"%.2f"', ["0.125", "0.375", "1.005", "-2", "1e21"]],
  ['"%f"', ["1", "0.1", "1e22"]],
  ['"%013.0f"', ["5", "-5", "1700000000000"]],
  ['"%06.1f"', ["0.25", "0.35", "-1"]],
  ['"%s|"', ["x", "5"]],
  ['"%6s|%%"', ["x"]],
])("format %s", async (form, values) => {
  const script = `local out = {}
for i = 1, #ARGV do out[i] = string.format(${form}, ARGV[i]) end
return out`;
  expect(compiled(script, values)).toEqual(await real(script, values));
});

it("random numbers are written alike", async () => {
  const { seed, next } = seeded();
  const numbers = Array.from({ length: 500 }, (_, i) => {
    const size = 10 ** Math.floor(next() * 40 - 15);
    const number = (next() - 0.5) * size;
    return String(i % 3 === 0 ? Math.round(number) : number);
  });
  const script = `local out = {}
for i = 1, #ARGV do
  out[i] = tostring(tonumber(ARGV[i])) .. " " .. ARGV[i] / 8 .. " " .. string.format("%.3f %d", ARGV[i], ARGV[i] % 1000)
end
return out`;
  expect(compiled(script, numbers), `HOLDFAST_SEED=${seed}`).toEqual(await real(script, numbers));
});

describe("patterns", () => {
  const SUBJECTS = [
    "",
    "a",
    "hello world",
    "1c 0000001 0000002",
    "key=value, other=12",
    "a.b-c%d",
    "[x](y)",
    "aaa",
    "-12.5e3",
    "two  spaces",
    "A1_b2",
  ];
  const ITEMS = [
    "a",
    "%d",
    "%a",
    "%w",
    "%s",
    "%S",
    "%.",
    "%%",
    ".",
    "[a-f]",
    "[^ ]",
    "[%w_]",
    "[^%s,]",
    "%l",
    "%u",
    "%x",
    "=",
  ];
  const SCRIPT = `local out = {}
for at = 1, #ARGV, 3 do
  local from, to, one, two = string.find(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]))
  local first, second = string.match(ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]))
  out[#out + 1] = tostring(from) .. " " .. tostring(to) .. " " .. tostring(one) .. " " .. tostring(two)
    .. " " .. tostring(first) .. " " .. tostring(second)
end
return out`;

  it("random patterns find and capture the same", async () => {
    const { seed, next } = seeded();
    const pick = <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;
    const argv: string[] = [];
    for (let i = 0; i < 2_000; i++) {
      const items = Array.from(
        { length: 1 + Math.floor(next() * 4) },
        () => pick(ITEMS) + pick(["", "", "*", "+", "-", "?"]),
      );
      const place = Math.floor(next() * items.length);
      const group = pick(["plain", "group", "place"]);
      if (group === "group") items[place] = `(${items[place]})`;
      if (group === "place") items[place] = `()${items[place]}`;
      argv.push(
        pick(SUBJECTS),
        `${pick(["", "^"])}${items.join("")}${pick(["", "$"])}`,
        pick(["1", "2", "5", "-3", "99"]),
      );
    }
    const [ours, theirs] = [compiled(SCRIPT, argv) as string[], (await real(SCRIPT, argv)) as string[]];
    const differ = ours.flatMap((one, i) =>
      one === theirs[i] ? [] : [[argv.slice(3 * i, 3 * i + 3), one, theirs[i]]],
    );
    expect(differ, `HOLDFAST_SEED=${seed}`).toEqual([]);
  });

  it.each(["%b()", "%f[a]", "[%D]", "a%", "[a", "%1"])(
    "%s, which the run time lacks, is refused",
    (pattern) => {
      expect(() => compiled(SCRIPT, ["abc", pattern, "1"])).toThrow("the Lua run time has no pattern");
    },
  );

  it("loops give what the pattern captures, or all that it matches", async () => {
    const script = `local out = {}
for word in string.gmatch(ARGV[1], "[^,]+") do out[#out + 1] = word end
for key, value in string.gmatch(ARGV[1], "(%w+)=(%w*)") do out[#out + 1] = key .. ":" .. value end
for all in string.gmatch(ARGV[1], "%d*") do out[#out + 1] = "<" .. all .. ">" end
return out`;
    for (const text of ["", "a=1,b=,c=33", ",,x", "12 345"])
      expect(compiled(script, [text]), text).toEqual(await real(script, [text]));
  });
});

describe("tables", () => {
  it.each([
    ["a list ends at its first nil", "return { 1 .. '', nil, 'x' }"],
    ["a place after a gap is known", "local t = { 'a' } t[3] = 'c' t[2] = 'b' return { #t .. '', t[3] }"],
    ["a removed end shortens the list", "local t = { 'a', 'b' } t[#t] = nil return { #t .. '', t[1] }"],
    ["a gap hides what comes after it", "local t = { 'a', 'b', 'c' } t[2] = nil return { t[1], t[3], t[2] }"],
    [
      "ipairs ends at nil",
      "local o, t = {}, { 'a', 'b' } t[4] = 'd' for i, v in ipairs(t) do o[i] = i .. v end return o",
    ],
    [
      "insert",
      "local t = { 'a' } table.insert(t, 'b') table.insert(t, 1, 'c') table.insert(t, 2, 'd') return t",
    ],
    [
      "remove",
      "local t = { 'a', 'b', 'c' } local x = table.remove(t, 1) local y = table.remove(t) return { x, y, t[1] }",
    ],
    [
      "remove where nothing is",
      "local t = { 'a' } local x, y = table.remove(t, 0), table.remove(t, 5) return { tostring(x), tostring(y), t[1] }",
    ],
    [
      "unpack of a list with a gap",
      "local t = { 'a' } t[3] = 'c' local x, y, z = unpack(t, 1, 3) return { x, tostring(y), z }",
    ],
    [
      "a table written with nil in it",
      "return { #{ 1, nil, 3 } .. '', #{ 1, nil } .. '', #{ nil, 2, nil } .. '' }",
    ],
    ["unpack of one", "local x, y, z = unpack({ 'a', nil, 'c' }) return { x, tostring(y), z }"],
    ["numeric loops", "local o = {} for i = 1, 2.5, 0.5 do o[#o + 1] = i .. '' end return o"],
    [
      "several values",
      "local function f() return 'a', 'b' end local x, y, z = f() return { x, y, tostring(z), f() }",
    ],
    ["a swap", "local a, b = 'a', 'b' a, b = b, a return { a, b }"],
    ["repeat", "local i = 0 repeat local j = i i = i + 1 until j >= 2 return i .. ''"],
    ["while and break", "local i = 0 while true do i = i + 1 if i > 4 then break end end return i .. ''"],
  ])("%s", async (_, script) => {
    expect(compiled(script, [])).toEqual(await real(script, []));
  });

  it("no length of a table with gaps is guessed", () => {
    expect(() => compiled("local t = {} t[2] = 'b' return #t .. ''", [])).toThrow(
      "no length of a table with gaps",
    );
    expect(() => compiled("local t = {} table.insert(t, 5, 'x') return t", [])).toThrow("no insert at 5");
  });
});

it.each([
  ["compares a number with a text", "return tostring(1 < ARGV[1])", "attempt to compare number with string"],
  ["compares with nil", "local x return tostring(x < 1)", "attempt to compare nil with number"],
  ["compares tables", "return tostring({} < {})", "attempt to compare two table values"],
  ["compares booleans", "return tostring((1 == 1) <= (1 == 2))", "attempt to compare two boolean values"],
  ["counts with a text that is no number", 'return ARGV[1] + 1 .. ""', "attempt to perform arithmetic on"],
  ["counts with nil", 'local x return x * 2 .. ""', "attempt to perform arithmetic on"],
  ["joins nil", 'local x return x .. ""', "attempt to concatenate"],
  ["joins a boolean", 'return (1 == 1) .. ""', "attempt to concatenate a boolean value"],
  ["asks for the length of nil", 'local x return #x .. ""', "attempt to get length of"],
  ["has nil as a key", "local t, x = {} t[x] = 1 return 'x'", "index is nil"],
  ["formats nothing", 'return string.format("%d")', "bad argument"],
  [
    "formats nil",
    'return string.format("%s %d", "a", nil)',
    "bad argument #3 to 'format' (number expected, got nil)",
  ],
  ["matches nil", 'return string.match(nil, "a")', "bad argument #1 to 'match' (string expected, got nil)"],
  [
    "takes a part of nil",
    "return string.sub(ARGV[2], 1)",
    "bad argument #1 to 'sub' (string expected, got nil)",
  ],
  [
    "takes the larger of nil",
    "return math.max(1, nil)",
    "bad argument #2 to 'max' (number expected, got nil)",
  ],
  ["unpacks nil", "return { unpack(nil) }", "bad argument #1 to 'unpack' (table expected, got nil)"],
  ["loops over nil", "for _ in ipairs(nil) do return 'x' end", "bad argument #1 to 'ipairs' (table expected"],
  ["counts to nil", "for i = 1, ARGV[2] do return 'x' end", "'for' limit must be a number"],
  ["indexes nil", "local x return x[1]", "a nil value)"],
  [
    "joins a list of tables",
    "return table.concat({ 'a', {} })",
    "invalid value (table) at index 2 in table for 'concat'",
  ],
])("a script that %s fails in both", async (_, script, why) => {
  expect(() => compiled(script, ["x"])).toThrow(L.LuaError);
  expect(() => compiled(script, ["x"])).toThrow(why.replace("a nil value)", "attempt to index a nil value"));
  await expect(real(script, ["x"])).rejects.toThrow(why);
});
