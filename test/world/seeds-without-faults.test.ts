import { describeSeeds } from "./seeds.ts";

describeSeeds("without faults", false);
