import { describe, expect, it } from "vitest";
import { Keys } from "../../src/redis/keys.ts";
import { askerOf, decodeMessage } from "../../src/redis/messages.ts";
import { slotOf } from "../../src/util/slots.ts";

const HOLD = "holdfast:client:host:7:0123456789abcdef:0000000a0123456789abc";
const ASKER = "ops/other-host:8:fedcba9876543210";
const NONCE = `${ASKER}.0123456789abcdef`;
const KEY = "app:holdfast:{a name {with} spaces}";

describe("a message", () => {
  it.each([
    [
      `grant 1800000000000007 1800000000000001 3000 1 ${HOLD} ${KEY}`,
      {
        is: "grant",
        token: 1_800_000_000_000_007,
        at: 1_800_000_000_000_001,
        ttl: 3_000,
        waits: true,
        hold: HOLD,
        key: KEY,
      },
    ],
    [
      `grant 1800000000000007 1800000000000001 3000 0 ${HOLD} ${KEY}`,
      expect.objectContaining({ is: "grant", waits: false }),
    ],
    [
      `share 1800000000000007 1800000000000001 3000 0 12 ${HOLD} ${KEY}`,
      {
        is: "grant",
        token: 1_800_000_000_000_007,
        at: 1_800_000_000_000_001,
        ttl: 3_000,
        waits: false,
        units: 12,
        hold: HOLD,
        key: KEY,
      },
    ],
    [`recall ${HOLD} - ${KEY}`, { is: "recall", hold: HOLD, nonce: null, isQuestion: false, key: KEY }],
    [
      `recall ${HOLD} ${NONCE} ${KEY}`,
      { is: "recall", hold: HOLD, nonce: NONCE, isQuestion: false, key: KEY },
    ],
    [
      `recall ${HOLD} ?${NONCE} ${KEY}`,
      { is: "recall", hold: HOLD, nonce: NONCE, isQuestion: true, key: KEY },
    ],
    [`busy ${NONCE} ${KEY}`, { is: "busy", nonce: NONCE, key: KEY }],
    [`idle ${NONCE} ${KEY}`, { is: "idle", nonce: NONCE, key: KEY }],
    [`revoked ${HOLD} ${KEY} alice%2C`, { is: "revoked", hold: HOLD, key: KEY, by: "alice," }],
  ])("%s", (text, message) => {
    expect(decodeMessage(text)).toEqual(message);
  });

  it.each([
    "",
    // No script gives a token of fewer digits.
    `grant 999999999999999 1800000000000001 3000 1 ${HOLD} ${KEY}`,
    "recall",
    `recall ${HOLD}`,
    `recall ${HOLD} ${KEY.replaceAll(" ", "_")}`,
    `recall ${HOLD} ? ${KEY}`,
    `recall ${HOLD}  - ${KEY}`,
    `recall  ${KEY}`,
    "busy",
    `busy ${NONCE}`,
    `idle  ${KEY}`,
    `idler ${NONCE} ${KEY}`,
    `probe ${NONCE}`,
    `grant 1800000000000007 1800000000000001 3000 ${HOLD} ${KEY}`,
    `grant 1800000000000007 1800000000000001 3000 2 ${HOLD} ${KEY}`,
    `grant 1800000000000007 1800000000000001 0 0 ${HOLD} ${KEY}`,
    `grant 1800000000000007 1800000000000001 -3000 0 ${HOLD} ${KEY}`,
    `grant 1800000000000007 1800000000000001 3e3 0 ${HOLD} ${KEY}`,
    `grant 0x6651728988b87 1800000000000001 3000 0 ${HOLD} ${KEY}`,
    `grant 9007199254740992 1800000000000001 3000 0 ${HOLD} ${KEY}`,
    `grant ${"9".repeat(400)} 1800000000000001 3000 0 ${HOLD} ${KEY}`,
    `grant 1800000000000007  1800000000000001 3000 0 ${HOLD} ${KEY}`,
    `grant 1800000000000007 1800000000000001 3000 0  ${KEY}`,
    `grant 1800000000000007 1800000000000001 3000 0 ${HOLD} `,
    `grant 1800000000000007 1800000000000001 3000 0 ${HOLD}`,
    "grant 1800000000000007 1800000000000001 3000",
    `share 1800000000000007 1800000000000001 3000 0 ${HOLD} ${KEY}`,
    `share 1800000000000007 1800000000000001 3000 0 0 ${HOLD} ${KEY}`,
    `share 1800000000000007 1800000000000001 3000 0 1.5 ${HOLD} ${KEY}`,
    "revoked",
    `revoked ${HOLD}`,
    `revoked  ${KEY}`,
  ])("that no script has written is invalid: '%s'", (text) => {
    expect(decodeMessage(text)).toBe(null);
  });
});

describe("a nonce", () => {
  it("names the client that asked", () => {
    expect(askerOf(NONCE)).toBe(ASKER);
    expect(askerOf("host:1:0123456789abcdef.0123456789abcdef")).toBe("host:1:0123456789abcdef");
  });

  it.each([
    ASKER,
    `${ASKER}.`,
    `${ASKER}.0123456789abcde`,
    `${ASKER}.0123456789abcdef0`,
    `${ASKER}:{x}.0123456789abcdef`,
    `{x}:1:0123456789abcdef.0123456789abcdef`,
    `holdfast:client:host:1:0123456789abcdef.0123456789abcdef`,
    "*.0123456789abcdef",
    "-",
  ])("that no client has made leads nowhere: '%s'", (nonce) => {
    expect(askerOf(nonce)).toBe(null);
  });
});

describe("the channel of another client", () => {
  it.each(["", "app:", "my app:", "{ü}:", "{tag}:"])(
    "is the one that it subscribes to, with the prefix '%s'",
    (prefix) => {
      for (const isCluster of [false, true]) {
        const keys = new Keys(prefix, isCluster);
        const theirs = keys.channels(ASKER);
        for (const name of ["x", "a name", "b{c}"]) {
          const channel = keys.channelOf(ASKER, name);
          expect(channel).toBe(theirs(name));
          if (isCluster) expect(slotOf(channel)).toBe(slotOf(prefix + keys.of(name).lock));
        }
      }
    },
  );
});
