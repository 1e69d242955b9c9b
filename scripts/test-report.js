import { writeFileSync } from 'node:fs'

/** What scripts/test.js tells at the end, as JSON in the file that TEST_REPORT names. */
export default class TestReport {
  onTestRunEnd(modules) {
    const files = modules.map((module) => ({
      file: module.relativeModuleId,
      seconds: module.diagnostic().duration / 1000,
      failed: module.state() === 'failed',
      tests: [...module.children.allTests()].map((test) => ({
        suite: outermost(test),
        state: test.result().state,
        tags: test.tags,
      })),
    }))
    writeFileSync(process.env.TEST_REPORT, JSON.stringify(files))
  }
}

/** The title of the suite that holds all others about it, or its own. */
function outermost(test) {
  let title = test.name
  for (let parent = test.parent; parent.type === 'suite'; parent = parent.parent) title = parent.name
  return title
}
