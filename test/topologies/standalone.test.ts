import { describeLocksOn } from "../contract/on-topologies.ts";

describeLocksOn("standalone");
