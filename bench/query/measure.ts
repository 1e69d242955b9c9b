/*
 * Questions over all pods of a fleet, in a process of its own: the first time they are asked, again after one row changed, and while
 * many change. Wall time and CPU of the process from the question to the whole answer; and for how long nothing else had its turn.
 */
import { constants, monitorEventLoopDelay, type NodeGCPerformanceDetail, PerformanceObserver } from 'node:perf_hooks'
import { keepHeapTight } from '../../src/platform/runtime/index.ts'
import { hex } from '../table/pods.ts'
import { startFleet } from './fleet.ts'

// As the hub does.
keepHeapTight()

const [clusters = 100, pods = 10_000, rounds = 40, perSecond = 500] = process.argv.slice(2).map(Number)

const rssMb = (): number => process.memoryUsage.rss() / 1e6
const fleet = await startFleet({ clusters, pods })
globalThis.gc?.()
const rssLoaded = rssMb()

const people = {
  administrator: { user: 'admin', groups: '' },
  filtered: { user: 'bob', groups: 'filtered' },
} as const
type Person = keyof typeof people
const everyone = Object.keys(people) as Person[]

const rows = '/api/v2/rows/pods?limit=100&aggregations=false'
const groups = '/api/v2/groups/pods?'
const search = '/api/v2/search?q='
const asIs = (url: string) => () => url
/** What is typed grows letter by letter, and is another word each time. */
const typed = (words: readonly string[]) => (round: number) => {
  const word = words[Math.floor(round / 4) % words.length] ?? ''
  return `${search}${word.slice(0, 2 + (round % 4) * 2)}`
}
const questions: Readonly<Record<string, (round: number) => string>> = {
  'all, the first 100': asIs(rows),
  'crash-looping': asIs(`${rows}&where=status%3DCrashLoopBackOff`),
  'pending, oldest first': asIs(`${rows}&where=status%3DPending&sort=createdAt`),
  'by status, the worst first': asIs(`${rows}&sort=status`),
  'by restarts': asIs(`${rows}&sort=restarts&order=desc`),
  'running, by restarts': asIs(`${rows}&where=status%3DRunning&sort=restarts&order=desc`),
  'by name': asIs(`${rows}&sort=name`),
  'by address': asIs(`${rows}&sort=ip&order=desc`),
  'of a namespace': asIs(`${rows}&namespace=team-3`),
  'with labels': asIs(`${rows}&labels=app%3Dapi-3`),
  'two words': asIs(`${rows}&q=billing+crash`),
  'a name as a word': asIs(`${rows}&q=a3f`),
  'grouped by status': asIs(`${groups}by=status`),
  'grouped by namespace': asIs(`${groups}by=namespace`),
  'grouped by node': asIs(`${groups}by=cluster&by=node`),
  'grouped by workload': asIs(`${groups}by=namespace&by=workload`),
  'crash-looping by workload': asIs(`${groups}by=workload&where=status%3DCrashLoopBackOff`),
  // Words of names, of namespaces and of what is generated, each typed once in a run of measurements.
  'typed, letter by letter': typed(
    Array.from({ length: Math.ceil(rounds / 4) }, (_, i) =>
      i % 8 === 6
        ? `team-${i % 40}`
        : i % 8 === 7
          ? hex(1000 * (i % clusters) + i, 8)
          : `${['billing', 'search', 'worker', 'cart', 'api', 'web'][i % 8]}-${1 + (i % 24)}`,
    ),
  ),
}

/** Collections of the whole heap that stop everything, as they come. */
const collections: { readonly at: number; readonly ms: number }[] = []
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    const { detail } = entry as unknown as { readonly detail: NodeGCPerformanceDetail } // entries of this type have it
    const isMajor = detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
    if (isMajor) collections.push({ at: entry.startTime, ms: entry.duration })
  }
}).observe({ entryTypes: ['gc'] })
const stoppedMs = (from: number, to: number): number =>
  collections.reduce((sum, { at, ms }) => sum + Math.max(0, Math.min(to, at + ms) - Math.max(from, at)), 0)

interface Asked {
  readonly began: number
  readonly wallMs: number
  readonly cpuMs: number
  readonly blockedMs: number
  readonly total: number
}

async function ask(person: Person, url: string): Promise<Asked> {
  const { user, groups } = people[person]
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  const [began, since] = [performance.now(), process.cpuUsage()]
  const response = await fleet.server.app.inject({
    url,
    headers: { 'x-forwarded-user': user, 'x-forwarded-groups': groups },
  })
  const wallMs = performance.now() - began
  const { user: own, system } = process.cpuUsage(since)
  await new Promise((resolve) => setImmediate(resolve))
  delay.disable()
  if (response.statusCode !== 200)
    throw new Error(`${url} for ${person}: ${response.statusCode} ${response.body.slice(0, 300)}`)
  const { total } = response.json() as { total: number }
  return { began, wallMs, cpuMs: (own + system) / 1000, blockedMs: delay.max / 1e6, total }
}

let turn = 0
const changeSome = (count: number): void => {
  for (let i = 0; i < count; i++) {
    turn += 1
    fleet.change((turn * 37) % clusters, (turn * 7919) % pods, turn)
  }
}
const part = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN
const medianAndWorst = (values: readonly number[]) => [0.5, 0.99].map((share) => part(values, share))
const told = (asked: readonly Asked[]) => {
  const quiet = asked.filter(({ began, wallMs }) => stoppedMs(began, began + wallMs) === 0)
  return {
    wall: medianAndWorst(asked.map(({ wallMs }) => wallMs)),
    cpu: medianAndWorst(asked.map(({ cpuMs }) => cpuMs)),
    quiet: medianAndWorst(quiet.map(({ cpuMs }) => cpuMs)),
    collected: asked.length - quiet.length,
  }
}

const results: Record<string, Partial<Record<Person, unknown>>> = {}
const only = process.env.ONLY
for (const [name, urlOf] of Object.entries(questions)) {
  if (only && !name.includes(only)) continue
  const of: Partial<Record<Person, unknown>> = {}
  results[name] = of
  const warm: Record<Person, Asked[]> = { administrator: [], filtered: [] }
  const live: Record<Person, Asked[]> = { administrator: [], filtered: [] }
  const cold: Partial<Record<Person, Asked>> = {}
  for (const person of everyone) cold[person] = await ask(person, urlOf(0))
  for (let round = 1; round <= rounds; round++) {
    for (const person of everyone) {
      changeSome(1)
      warm[person].push(await ask(person, urlOf(round)))
    }
  }
  for (let round = 1; round <= rounds; round++) {
    // As much as comes in 100 ms.
    for (const person of everyone) {
      changeSome(perSecond / 10)
      live[person].push(await ask(person, urlOf(round)))
    }
  }
  for (const person of everyone)
    of[person] = {
      cold: cold[person],
      warm: told(warm[person]),
      live: told(live[person]),
      total: live[person].at(-1)?.total,
    }
  if (process.env.VERBOSE) process.stderr.write(`${name} ${JSON.stringify(of)}\n`)
}
const end = rssMb()
globalThis.gc?.()
const { heapUsed, external } = process.memoryUsage()
const peak = process.resourceUsage().maxRSS / 1000
process.stdout.write(
  JSON.stringify({
    results,
    collectionMs: medianAndWorst(collections.map(({ ms }) => ms)),
    rss: { loaded: rssLoaded, end, peak, live: (heapUsed + external) / 1e6 },
  }),
)
process.exit()
