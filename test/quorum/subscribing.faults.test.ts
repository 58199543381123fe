import { expect, it } from "vitest";
import { Quorum } from "../../src/quorum/quorum.ts";
import { QuorumSubscriptions } from "../../src/quorum/subscriptions.ts";
import { failure } from "../contract/observe.ts";
import { linkOf } from "../support/link.ts";
import { QuorumStage } from "../support/quorum-stage.ts";
import { until } from "../support/until.ts";

const stage = new QuorumStage(3);

it("subscribing fails when a node that was acknowledged is lost before enough others are", async () => {
  const { nodes } = await stage.join({}, "proxies");
  const quorum = new Quorum(nodes.map(linkOf), { replyTimeout: 3_000, nodeTimeout: 400, restartDelay: 0 });
  const subscriptions = new QuorumSubscriptions(quorum, { isOwn: () => false, isWanted: () => true });
  const channel = quorum.keys.ofQuorum(stage.name).free;
  stage.proxy(3).refuse(true); // never there
  stage.proxy(3).cut();
  stage.proxy(2).delay(1_000, { which: "subscribers" });
  subscriptions.listen(channel, () => {});
  const ready = failure(subscriptions.ready(channel));
  await until(async () => (await stage.listeners(1)) === 1);
  stage.proxy(1).refuse(true);
  stage.proxy(1).cut("subscribers");
  await until(async () => (await stage.listeners(1)) === 0);
  expect(String(await ready)).toContain("lost again");
  subscriptions.close();
  quorum.detach();
});
