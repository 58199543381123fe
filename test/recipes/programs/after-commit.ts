import { once } from "node:events";
import { createLockClient } from "holdfast";
import { Pool, type PoolClient } from "pg";
import { connect, figure, prove, startProcess } from "./support.ts";

if (!process.env.PGPORT) {
  process.stdout.write("    skipped: there is no PostgreSQL server (initdb, postgres) on this machine\n");
  process.exit();
}
const redis = connect();
const locks = createLockClient(redis);
const pool = new Pool({ max: 4 });

/** BEGIN, the body, and COMMIT; or ROLLBACK. */
async function transaction(body: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    await body(client);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

async function addOne(client: PoolClient, account: string): Promise<void> {
  const { rows } = await client.query("SELECT amount FROM accounts WHERE id = $1", [account]);
  await client.query("UPDATE accounts SET amount = $2 WHERE id = $1", [account, rows[0].amount + 1]);
}

// #region commit
/** Right: the lock is around the transaction. */
const add = (account: string): Promise<void> =>
  locks.lock(`account:${account}`).withLock({ wait: 10_000 }, (lease) =>
    transaction(async (client) => {
      await addOne(client, account);
      lease.assertHeld(); // the next line is COMMIT
    }),
  );

/** Wrong: the transaction is around the lock. The next holder reads before COMMIT. */
const addTooEarly = (account: string): Promise<void> =>
  transaction((client) =>
    locks.lock(`account:${account}`).withLock({ wait: 10_000 }, () => addOne(client, account)),
  );
// #endregion

const CALLS = 20;
const [, , account] = process.argv;
if (account !== undefined) {
  const run = account === "right" ? add : addTooEarly;
  const caller = async (): Promise<void> => {
    for (let i = 0; i < CALLS; i++) await run(account);
  };
  await Promise.all([caller(), caller()]);
  process.disconnect?.();
} else {
  // COMMIT takes 2 ms, as with a replica that must confirm it.
  await pool.query(`
    CREATE TABLE accounts (id text PRIMARY KEY, amount int NOT NULL);
    INSERT INTO accounts VALUES ('right', 0), ('wrong', 0);
    CREATE FUNCTION nap() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(0.002); RETURN NULL; END';
    CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON accounts
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION nap()`);
  const fleet = ["right", "right", "wrong", "wrong"].map((which) => startProcess(import.meta.url, which));
  await Promise.all(fleet.map((child) => child.exitCode ?? once(child, "exit")));
  const { rows } = await pool.query<{ amount: number }>("SELECT amount FROM accounts ORDER BY id");
  const [right, wrong] = rows.map(({ amount }) => amount);
  const all = 2 * 2 * CALLS;
  prove(right === all, `a lock that is released after COMMIT loses no update (${right} of ${all})`);
  prove(Number(wrong) < all, "one that is released before COMMIT does");
  figure("updates lost by the wrong order", `${all - Number(wrong)} of ${all}`);
}
await pool.end();
await locks.close();
await redis.quit();
