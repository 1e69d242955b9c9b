import { basename, join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { measuredSlowness } from './src/platform/runtime/testing/slowness.ts'

// Measured before anything else runs, for whatever waits or has a bar: src/platform/runtime/testing/slowness.ts reads it. This file is
// read once for each project.
const isFirst = process.env.TEST_SLOWNESS === undefined
process.env.TEST_SLOWNESS ??= String(measuredSlowness())
const slowness = Number(process.env.TEST_SLOWNESS)

// What a shared process has run before makes code slower: these measure it.
const ofSpeed = 'src/pipeline/expression/{bounds,fuzz,section-11}.test.ts'
// Compare a hub under attack with a calm one, and count seconds until the page says something: nothing may run beside them.
const ofSeconds = 'test/journeys/{siege,page-hang,page-scale,demo}.test.ts'

/**
 * Files at once: most of their time they wait for servers to start, for looks and leases to pass. Two cores are half idle with three
 * of them, an eighth with six. With eight of them a slow machine was so busy (load 20 to 30) that waits of journeys ended before what they waited for;
 * one that is half as fast is busy with four.
 * Journeys and units share them: the first small units begin where the last long journeys leave the processors idle.
 */
const atOnce = slowness < 1.8 ? 6 : 4
if (isFirst && slowness > 1)
  console.log(
    `This machine is ${slowness} times as slow as the one on which bars were set: waits are that much longer, ${atOnce} files run at once.`,
  )

// How long a whole journey may take on a busy machine: longer than each wait in it, which says better what did not come.
const slow = { testTimeout: 600_000 * slowness, hookTimeout: 600_000 * slowness }

// A page on which something did not come tells what was there instead.
const ofPages = { setupFiles: ['test/page/on-failure.ts'] }

/**
 * The files that take longest, about longest first, as `npm test` names them: what begins last is waited for by all, and their size
 * tells little of it. Browsers, which leave no processor idle, stand between what waits.
 */
const longest = `
  kubernetes-push page member-clock owners page-access kubernetes-join members page-history up chaos page-types ocm-registration
  push-bad-luck nats page-layout guides join deploy migrate missing webhooks inventory-kinds clock resources policies-by-set
  member-bad-luck page-events bad-members owners-number usage live page-members backup-kubernetes push metric-sources sign-in
  one-machine backup inventory-agents faults two-apis join-kubernetes join-kills install
  publisher git-sink replicated-set kills kafka behaviour registration tls rotation http-connections real-apiserver fan-in
  journal-sealed agent-deployment buffer
`
  .trim()
  .split(/\s+/)

/** Journeys first, as their processes are others than those of units; of each those first, and of the others the largest. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const group = ({ project }: TestSpecification) => project.config.sequence.groupOrder
    const place = ({ moduleId }: TestSpecification) => {
      const at = longest.indexOf(basename(moduleId, '.test.ts'))
      return at < 0 ? longest.length : at
    }
    const isUnit = ({ project }: TestSpecification) => Number(project.name === 'units')
    return (await super.sort(files)).sort((a, b) => group(a) - group(b) || isUnit(a) - isUnit(b) || place(a) - place(b))
  }
}

/** Why a test is left out by `npm test`; `npm run soak journeys` runs these alone. */
const tags = [
  { name: 'again', description: 'shows once more, in a further setup, what another test shows' },
  { name: 'long', description: 'goes through many cases of what another test shows by some of them' },
]

export default defineConfig({
  test: {
    tags,
    sequence: { sequencer: LongestFirst },
    testTimeout: 240_000 * slowness,
    hookTimeout: 240_000 * slowness,
    // What is waited for guards against hanging, not against a machine that is busy.
    expect: { poll: { timeout: 60_000 * slowness } },
    pool: 'forks',
    // Young objects have more room: collecting them was a tenth of the work of what runs in here.
    execArgv: ['--max-semi-space-size=32'],
    // Of programs in Go, above all kubectl: the same.
    env: { GOGC: '400' },
    alias: [{ find: /^fast-check$/, replacement: join(import.meta.dirname, 'test/properties.ts') }],
    reporters: ['default'],
    projects: [
      {
        // Hundreds of small files: a process keeps what one file has imported for the next.
        extends: true,
        test: {
          name: 'units',
          include: ['src/**/*.test.ts', 'web/src/**/*.test.{ts,tsx}'],
          exclude: [ofSpeed],
          isolate: false,
          maxWorkers: atOnce,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { name: 'speed', include: [ofSpeed], maxWorkers: 2, sequence: { groupOrder: 0 } },
      },
      {
        // Programs that wait for each other and for time: intervals of collection, leases, silences; and browsers, which do not.
        extends: true,
        test: {
          ...slow,
          ...ofPages,
          name: 'journeys',
          include: ['test/**/*.test.ts'],
          exclude: [ofSeconds],
          // A fifth of the processor's work of these was to import the same sources again.
          isolate: false,
          maxWorkers: atOnce,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: { ...slow, ...ofPages, name: 'alone', include: [ofSeconds], maxWorkers: 1, sequence: { groupOrder: 2 } },
      },
    ],
  },
})
