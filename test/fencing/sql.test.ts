import { readFileSync } from "node:fs";
import type { Client, QueryResult } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { failure } from "../contract/observe.ts";
import { noPostgres, Postgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";

// The patterns of docs/fencing.md, in a real PostgreSQL, word for word.

const UPDATE = "UPDATE orders SET status = $2, fence = $3 WHERE id = $1 AND fence <= $3";
const UPSERT = `INSERT INTO orders (id, status, fence) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET status = EXCLUDED.status, fence = EXCLUDED.fence
WHERE orders.fence <= EXCLUDED.fence`;
const PASS = `INSERT INTO fences (resource, token) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET token = EXCLUDED.token
WHERE fences.token <= EXCLUDED.token`;
const page = readFileSync(new URL("../../docs/fencing.md", import.meta.url), "utf8");
const token = Date.now() * 1_000;

describe.skipIf(noPostgres)(`in PostgreSQL${noPostgres && `: skipped, ${noPostgres}`}`, () => {
  let postgres: Postgres;
  let one: Client;
  let two: Client;

  beforeAll(async () => {
    postgres = await Postgres.launch();
    one = await postgres.connect();
    two = await postgres.connect();
    const tables = page.match(/^CREATE TABLE .*?;/gms) ?? [];
    for (const table of tables) await one.query(table);
  });
  afterAll(() => postgres?.stop());
  beforeEach(async () => {
    await one.query("TRUNCATE orders, fences");
    await one.query("INSERT INTO orders (id, status) VALUES (42, 'new')");
  });

  const order = async () => (await two.query("SELECT status, fence FROM orders WHERE id = 42")).rows[0];
  const count = async (query: Promise<QueryResult>) => (await query).rowCount;
  /** Waits until so many statements wait for a row of somebody else's. */
  const blocked = (count: number) =>
    until(async () => {
      const { rows } = await two.query(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
      );
      return Number(rows[0].count) === count;
    });

  it("is printed in the docs as it is tested here", () => {
    for (const statement of [UPDATE, UPSERT, PASS]) expect(page).toContain(`\n${statement};\n`);
  });

  describe.each([
    ["UPDATE", UPDATE],
    ["INSERT … ON CONFLICT", UPSERT],
  ])("%s", (_, statement) => {
    it("accepts the first token, the same one again and larger ones, and no smaller one", async () => {
      const write = (status: string, fence: number) => count(one.query(statement, [42, status, fence]));
      expect(await write("a", token)).toBe(1);
      expect(await write("b", token)).toBe(1);
      expect(await write("c", token + 1)).toBe(1);
      expect(await write("late", token)).toBe(0);
      expect(await order()).toEqual({ status: "c", fence: `${token + 1}` });
    });

    it("keeps all digits of the largest token", async () => {
      await one.query(statement, [42, "a", Number.MAX_SAFE_INTEGER]);
      expect(await count(one.query(statement, [42, "b", Number.MAX_SAFE_INTEGER - 1]))).toBe(0);
      expect(await order()).toEqual({ status: "a", fence: "9007199254740991" });
    });

    it("re-checks a row that another transaction has written meanwhile", async () => {
      await one.query("BEGIN");
      await one.query(statement, [42, "later", token + 1]);
      const three = await postgres.connect();
      const late = count(three.query(statement, [42, "late", token]));
      await blocked(1);
      await one.query("COMMIT");
      expect(await late).toBe(0);
      expect(await order()).toEqual({ status: "later", fence: `${token + 1}` });
    });

    it("fails under REPEATABLE READ in that case, and writes nothing", async () => {
      const three = await postgres.connect();
      await three.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
      await three.query("SELECT 1 FROM orders");
      await one.query(statement, [42, "later", token + 1]);
      expect(await failure(three.query(statement, [42, "late", token + 2]))).toMatchObject({ code: "40001" });
      await three.query("ROLLBACK");
      expect((await order()).status).toBe("later");
    });
  });

  it("without the condition a late write succeeds", async () => {
    await one.query(UPDATE, [42, "later", token + 1]);
    expect(await count(one.query("UPDATE orders SET status = $2 WHERE id = $1", [42, "late"]))).toBe(1);
    expect((await order()).status).toBe("late");
  });

  it("ON CONFLICT inserts the missing row; UPDATE cannot distinguish it from a stale token", async () => {
    expect(await count(one.query(UPDATE, [7, "a", token]))).toBe(0);
    expect(await count(one.query(UPSERT, [7, "a", token]))).toBe(1);
    expect(await count(one.query(UPSERT, [7, "late", token - 1]))).toBe(0);
  });

  describe("a table of fences", () => {
    /** As in the docs: the fence first, then whatever else the transaction does. */
    async function transact(
      client: Client,
      fence: number,
      work: () => Promise<unknown>,
    ): Promise<"done" | "stale"> {
      await client.query("BEGIN");
      const passed = await client.query(PASS, ["orders", fence]);
      if (passed.rowCount === 0) {
        await client.query("ROLLBACK");
        return "stale";
      }
      await work();
      await client.query("COMMIT");
      return "done";
    }
    const set = (client: Client, status: string) => () =>
      client.query("UPDATE orders SET status = $1 WHERE id = 42", [status]);

    it("accepts the first token, the same one again and larger ones, and no smaller one", async () => {
      for (const [fence, outcome] of [
        [token, "done"],
        [token, "done"],
        [token + 5, "done"],
        [token + 4, "stale"],
      ] as const)
        expect(await transact(one, fence, set(one, `${fence}`))).toBe(outcome);
      expect((await order()).status).toBe(`${token + 5}`);
    });

    it("makes a late transaction wait for the one before, and then refuses it, even the first two", async () => {
      const three = await postgres.connect();
      let late: Promise<string> | undefined;
      await transact(one, token + 1, async () => {
        late = transact(three, token, set(three, "late"));
        await blocked(1);
        await set(one, "later")();
      });
      expect(await late).toBe("stale");
      expect((await order()).status).toBe("later");
    });

    it("forgets a token when its transaction is rolled back", async () => {
      await one.query("BEGIN");
      await one.query(PASS, ["orders", token + 1]);
      await one.query("ROLLBACK");
      expect(await transact(one, token, set(one, "a"))).toBe("done");
    });

    it("a holder suspended inside its transaction is cut off by the timeout, and cannot commit", async () => {
      const three = await postgres.connect();
      await three.query("SET idle_in_transaction_session_timeout = 300");
      await three.query("BEGIN");
      await three.query(PASS, ["orders", token]);
      await set(three, "late")();
      // It stops here. The next one waits for its row, no longer than the timeout.
      expect(await transact(one, token + 1, set(one, "later"))).toBe("done");
      await expect(three.query("COMMIT")).rejects.toThrow();
      expect((await order()).status).toBe("later");
    });

    it("is swept by the time that tokens contain", async () => {
      const old = (Date.now() - 31 * 86_400_000) * 1_000;
      await one.query(PASS, ["old", old]);
      await one.query(PASS, ["orders", token]);
      await one.query(
        "DELETE FROM fences WHERE token < extract(epoch FROM now() - interval '30 days') * 1000000",
      );
      expect((await one.query("SELECT resource FROM fences")).rows).toEqual([{ resource: "orders" }]);
    });
  });
});
