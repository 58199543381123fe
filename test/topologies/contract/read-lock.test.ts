import { describeElsewhere } from "../../contract/elsewhere.ts";

describeElsewhere("readLock");
