/*
 * GET /clusters of one fleet by an administrator and by people who see less of it, interleaved, in a process of its own. CPU
 * of the process from the question to the whole answer; between rounds some clusters change, so that no answer is a kept one.
 */
import { invariant } from '#model'
import { allowed, startHub } from './hub.ts'

const [directory = '', ...numbers] = process.argv.slice(2)
const [clusters = 1000, nodes = 10, changes = 33, rounds = 40] = numbers.map(Number)

const filtered = [
  { type: 'nodes', visibility: 'filtered', denied_names: ['node-3'], deny_name_patterns: [['*-7', '^.*-7$']] },
  { type: 'namespaces', visibility: 'filtered', name_patterns: [['app-*', '^app-.*$']] },
  { type: 'pods', visibility: 'filtered', deny_ns_patterns: [['app-1?', '^app-1.$']] },
] as const

const hub = await startHub({
  directory,
  clusters,
  nodes,
  policies: [
    allowed('all-of-a-third', 'third', ['cluster-*1', 'cluster-*4', 'cluster-*7']),
    allowed('a-part-of-all', 'filtered', ['*'], filtered),
    // Policies that are about somebody else, and policies that select nothing, cost nothing much.
    ...Array.from({ length: 500 }, (_, i) =>
      allowed(`other-${i}`, i % 5 === 0 ? 'filtered' : 'others', [`other-${i}-*`]),
    ),
  ],
})
await hub.server.app.ready()

const people = {
  administrator: { user: 'admin', groups: '' },
  third: { user: 'ann', groups: 'third' },
  filtered: { user: 'bob', groups: 'filtered' },
} as const
type Person = keyof typeof people
const everyone = Object.keys(people) as Person[]

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

async function ask(person: Person, url: string): Promise<{ ms: number; bytes: number; listed: number }> {
  const { user, groups } = people[person]
  const since = cpuMs()
  const response = await hub.server.app.inject({
    url,
    headers: { 'x-forwarded-user': user, 'x-forwarded-groups': groups },
  })
  const ms = cpuMs() - since
  invariant(response.statusCode === 200, `${url} for ${person}: ${response.statusCode} ${response.body.slice(0, 200)}`)
  const body = response.json() as readonly unknown[] | { items: readonly unknown[] }
  return {
    ms,
    bytes: response.rawPayload.length,
    listed: Array.isArray(body) ? body.length : (body as { items: readonly unknown[] }).items.length,
  }
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

const results: Record<
  string,
  Record<Person, { first: number; live: number; kept: number; bytes: number; listed: number }>
> = {}
let turn = 0
for (const url of ['/api/v1/clusters', '/api/v2/clusters?limit=1000']) {
  const times = Object.fromEntries(
    everyone.map((person) => [person, { live: [] as number[], kept: [] as number[] }]),
  ) as Record<Person, { live: number[]; kept: number[] }>
  const last = new Map<Person, Awaited<ReturnType<typeof ask>>>()
  for (const person of everyone) last.set(person, await ask(person, url))
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < changes; i++) await hub.change(turn++ % clusters)
    await new Promise((resolve) => setTimeout(resolve, 20))
    // Whoever comes first makes what others share: everyone in turn.
    const order = everyone.map((_, i) => everyone[(i + round) % everyone.length] ?? 'administrator')
    for (const person of order) times[person].live.push((await ask(person, url)).ms)
    for (const person of order) times[person].kept.push((await ask(person, url)).ms)
  }
  results[url] = Object.fromEntries(
    everyone.map((person) => {
      const { ms = 0, bytes = 0, listed = 0 } = last.get(person) ?? {}
      return [
        person,
        {
          first: ms,
          live: median(times[person].live.slice(5)),
          kept: median(times[person].kept.slice(5)),
          bytes,
          listed,
        },
      ]
    }),
  ) as (typeof results)[string]
}
process.stdout.write(JSON.stringify(results))
process.exit()
