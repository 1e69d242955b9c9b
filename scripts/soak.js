#!/usr/bin/env node
// `npm run soak NAME [-- words]`: a long run, for a night rather than for each change. Without a name: which there are.
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const runs = {
  journeys: {
    file: 'scripts/test.js',
    what: 'the tests that `npm test` leaves out, by their tags in vitest.config.ts: what is shown again in a further setup, and the many cases of one thing: [files]',
    settings: () => ({ SOAK_JOURNEYS: 1 }),
  },
  siege: {
    file: 'test/soak-siege.ts',
    what: 'a crowd at every door of a hub, beside a calm one: [windows = 5] [seconds = 60]',
  },
  damage: { file: 'test/soak-damage.ts', what: 'one harmed file in a data folder: [runs = 500] [seed]' },
  page: {
    file: 'test/soak-page.ts',
    what: 'somebody reads, filters and scrolls 100,000 pods that move: [minutes = 30] [changes per second = 500] [clusters = 100] [pods of each = 1000]',
  },
  chaos: {
    test: 'test/chaos',
    what: 'hubs and agents that are killed at random, and no sample lost or doubled: [kills = 1000] [agents = 20]',
    settings: ([kills = 1000, agents = 20]) => ({ CHAOS_CYCLES: kills, CHAOS_AGENTS: agents }),
  },
  streams: {
    test: 'src/pipeline/api/stream-resume.test.ts',
    what: 'streams of two processes, cut off, stuck and under policies that change: [stories = 10000]',
    settings: ([stories = 10_000]) => ({ STREAM_STORIES: stories }),
  },
  properties: {
    test: 'src',
    what: 'every property with all the cases it names, of which `npm test` draws an eighth, beside the other tests of its file',
    settings: () => ({ WHOLE_PROPERTIES: 1 }),
  },
  rbac: {
    test: 'src/platform/apiserver/rbac/real.test.ts',
    what: 'random questions about random roles, to a real kube-apiserver and to ours: [questions = 10000] [seed = 1]',
    settings: ([questions = 10_000, seed = 1]) => ({ RBAC_QUESTIONS: questions, RBAC_SEED: seed }),
  },
  silence: {
    test: 'test/journeys/silent-redis.test.ts',
    what: 'all connections to Redis fall silent, and are back within 15 s: [times = 100]',
    settings: ([times = 100]) => ({ SILENCES: times }),
  },
  join: {
    file: 'test/soak-join.ts',
    what: 'machines that join a hub, both killed at every step, and no member lost, doubled, or its key elsewhere: [kills = 1000] [at once = 16]',
  },
  loss: {
    file: 'test/soak-loss.ts',
    what: 'members whose packets get lost on Linux, and no false alarm; one that dies is noticed: [minutes = 30] [percent = 5] [members = 5]',
  },
  rotation: {
    test: 'src/control/joining/rotation.test.ts',
    what: "the hub's CAs rotate under members at work, which renew and are never refused: [members = 500]",
    settings: ([members = 500]) => ({ ROTATION_MEMBERS: members }),
  },
  inventory: {
    test: 'test/journeys/inventory-counts.test.ts',
    what: 'an agent of many objects that is killed at every step, and no row deleted; two changes a second into git, and at most 12 commits: [kills = 20] [rows = 10000] [seconds = 600]',
    settings: ([kills = 20, rows = 10_000, seconds = 600]) => ({
      ...{ INVENTORY_KILLS: kills, INVENTORY_ROWS: rows, INVENTORY_HISTORY_S: seconds },
    }),
  },
  nats: {
    test: 'test/journeys/nats.test.ts',
    what: 'NATS, hub and agent restarted and a member away, and a consumer sees nothing twice: [seconds away = 80]',
    settings: ([away = 80]) => ({ MEMBER_AWAY_S: away }),
  },
}

const [name = '', ...words] = process.argv.slice(2)
const run = runs[name]
if (!run) {
  for (const [each, { what }] of Object.entries(runs)) console.log(`npm run soak ${each} -- …   ${what}`)
  process.exit(name === '' ? 0 : 1)
}
const env = { ...process.env, ...run.settings?.(words) }
const node = (...args) => spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env }).status ?? 1
const vitest = join(root, 'node_modules/vitest/vitest.mjs')
// What is started is the built executable, as people start it.
const built = node('scripts/build.js', 'node')
process.exit(built || (run.test ? node(vitest, 'run', run.test) : node('--import', 'tsx', run.file, ...words)))
