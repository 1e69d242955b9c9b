import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/*
 * Streams of rows to many readers while a row changes once a second, without readers that are stuck and with them. The hub has a process of
 * its own, the readers have some.
 */

/** What readers follow: its server, its readers, and what a report says of it. */
interface Subject {
  readonly result: string
  readonly server: readonly [file: string, ...args: string[]]
  readonly clients: readonly [file: string, ...args: string[]]
  readonly summary: string
  readonly late: string
  readonly memory: string
}

const TENANTS = 1000
const subjects: Readonly<Record<string, Subject>> = {
  rows: {
    result: 'fanout.md',
    server: ['fanout/server.ts', '10'],
    clients: ['fanout/clients.ts'],
    summary: 'server-sent event streams of `rows=nodes`, one access view, one changed batch of ten nodes a second',
    late: 'from the receipt of the batch at the hub to the reader, the 50 ms of gathering included',
    memory: 'RSS of the hub over that without a stream',
  },
  monitor: {
    result: 'fanout-monitor.md',
    server: ['fanout/monitor-server.ts', String(TENANTS), '2'],
    clients: ['fanout/monitor-clients.ts', String(TENANTS)],
    summary: `streams of \`/sse/health\` of Cluster Monitor's interface, ${TENANTS} tenants with two pods each, usage of all of them read once a second`,
    late: 'from the read of usage to the reader, the 20 ms within which the monitor looks for changes included',
    memory:
      'RSS of the monitor, after a collection of garbage, over that without a stream; views and frames of all tenants included, history of usage kept small',
  },
}

interface Options {
  readonly subject: Subject
  readonly clients: number
  readonly slow: number
  readonly seconds: number
  readonly processes: number
}

interface Result {
  readonly name: string
  readonly messages: number
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly kbEach: number
  readonly cpuMsPerSecond: number
  readonly ended: number
}

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Runs the bench and writes its page of bench/results. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clients: { type: 'string', default: '10000' },
      slow: { type: 'string', default: '1000' },
      seconds: { type: 'string', default: '30' },
      processes: { type: 'string', default: '4' },
      of: { type: 'string', default: 'rows' },
      write: { type: 'boolean', default: true },
    },
    allowNegative: true,
  })
  const subject = subjects[values.of]
  if (!subject) throw new Error(`--of is one of ${Object.keys(subjects).join(', ')}`)
  const options: Options = {
    subject,
    clients: Number(values.clients),
    slow: Number(values.slow),
    seconds: Number(values.seconds),
    processes: Number(values.processes),
  }
  const results = [await measure('all read', { ...options, slow: 0 })]
  if (options.slow > 0) results.push(await measure(`${options.slow} of them stuck`, options))
  const text = report(results, options)
  await mkdir(here('results'), { recursive: true })
  if (values.write) await writeFile(here(`results/${subject.result}`), text)
  process.stdout.write(text)
}

interface Facts {
  readonly rssBytes: number
  readonly cpuMs: number
}

async function measure(name: string, { subject, clients, slow, seconds, processes }: Options): Promise<Result> {
  const directory = await mkdtemp(`${tmpdir()}/bench-fanout-`)
  const [serverFile, ...serverArgs] = subject.server
  const [clientsFile, ...clientsArgs] = subject.clients
  const server = fork(here(serverFile), [directory, ...serverArgs])
  const readers: ChildProcess[] = []
  try {
    const { url } = (await message(server)) as { url: string }
    const empty = (await ask(server)) as Facts
    const share = (of: number) => String(Math.floor(of / processes))
    for (let at = 0; at < processes; at++) {
      readers.push(fork(here(clientsFile), [url, share(clients - slow), share(slow), ...clientsArgs]))
      await message(readers.at(-1) as ChildProcess) // one process opens its own at a time
    }
    await sleep(3000)
    await Promise.all(readers.map(ask)) // what came while they were opened does not count
    const before = (await ask(server)) as Facts
    await sleep(seconds * 1000)
    const after = (await ask(server)) as Facts
    const told = (await Promise.all(readers.map(ask))) as { late: number[]; ended: number }[]
    const late = told.flatMap((one) => one.late).sort((a, b) => a - b)
    const at = (share: number): number => late[Math.min(late.length - 1, Math.floor(late.length * share))] ?? Number.NaN
    return {
      name,
      messages: late.length,
      p50: at(0.5),
      p99: at(0.99),
      max: at(1),
      kbEach: (after.rssBytes - empty.rssBytes) / clients / 1024,
      cpuMsPerSecond: (after.cpuMs - before.cpuMs) / seconds,
      ended: told.reduce((sum, one) => sum + one.ended, 0),
    }
  } finally {
    for (const child of [...readers, server]) child.kill()
    await rm(directory, { recursive: true, force: true })
  }
}

async function message(child: ChildProcess): Promise<unknown> {
  const [told] = (await once(child, 'message')) as [unknown]
  return told
}

function ask(child: ChildProcess): Promise<unknown> {
  const answer = message(child)
  child.send('ask')
  return answer
}

function report(results: readonly Result[], { subject, clients, seconds, processes }: Options): string {
  const load = loadavg().map((one) => one.toFixed(1))
  const rows = results.map(
    ({ name, messages, p50, p99, max, kbEach, cpuMsPerSecond, ended }) =>
      `| ${name} | ${messages} | ${p50} | ${p99} | ${max} | ${kbEach.toFixed(1)} | ${Math.round(cpuMsPerSecond)} | ${ended} |`,
  )
  return `# ${subject.result.replace('.md', '')}

${clients} ${subject.summary} for ${seconds} s; readers in ${processes} processes on the
same machine (${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, load ${load.join(' ')} at the end, Node ${process.version}).
Late: ${subject.late}. Memory: ${subject.memory}.

| readers | messages | p50 ms | p99 ms | max ms | KB each | CPU ms/s of the hub | ended |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}
