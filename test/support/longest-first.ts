import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The longest files first, even if no earlier run has recorded their times: a contract is a short
 * file that runs for a minute, and at the end it would keep one worker busy while the others are
 * idle.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files); // project by project
    const projects = [...new Set(sorted.map(({ project }) => project))];
    const rank = (file: TestSpecification) => 2 * projects.indexOf(file.project) + (isContract(file) ? 0 : 1);
    return sorted.sort((a, b) => rank(a) - rank(b));
  }
}

const isContract = ({ moduleId }: TestSpecification): boolean =>
  moduleId.endsWith(".contract.test.ts") || moduleId.includes("/test/contract/");
