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

interface Options {
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

/** Runs the bench and writes bench/results/fanout.md. */
export async function run(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clients: { type: 'string', default: '10000' },
      slow: { type: 'string', default: '1000' },
      seconds: { type: 'string', default: '30' },
      processes: { type: 'string', default: '4' },
    },
  })
  const options: Options = {
    clients: Number(values.clients),
    slow: Number(values.slow),
    seconds: Number(values.seconds),
    processes: Number(values.processes),
  }
  const results = [await measure('all read', { ...options, slow: 0 })]
  if (options.slow > 0) results.push(await measure(`${options.slow} of them stuck`, options))
  const text = report(results, options)
  await mkdir(here('results'), { recursive: true })
  await writeFile(here('results/fanout.md'), text)
  process.stdout.write(text)
}

interface Facts {
  readonly rssBytes: number
  readonly cpuMs: number
}

async function measure(name: string, { clients, slow, seconds, processes }: Options): Promise<Result> {
  const directory = await mkdtemp(`${tmpdir()}/bench-fanout-`)
  const server = fork(here('fanout/server.ts'), [directory, '10'])
  const readers: ChildProcess[] = []
  try {
    const { url } = (await message(server)) as { url: string }
    const empty = (await ask(server)) as Facts
    const share = (of: number) => String(Math.floor(of / processes))
    for (let at = 0; at < processes; at++) {
      readers.push(fork(here('fanout/clients.ts'), [url, share(clients - slow), share(slow)]))
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

function report(results: readonly Result[], { clients, seconds, processes }: Options): string {
  const load = loadavg().map((one) => one.toFixed(1))
  const rows = results.map(
    ({ name, messages, p50, p99, max, kbEach, cpuMsPerSecond, ended }) =>
      `| ${name} | ${messages} | ${p50} | ${p99} | ${max} | ${kbEach.toFixed(1)} | ${Math.round(cpuMsPerSecond)} | ${ended} |`,
  )
  return `# fanout

${clients} server-sent event streams of \`rows=nodes\`, one access view, one changed batch of ten nodes a second for ${seconds} s; readers in ${processes} processes on the
same machine (${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, load ${load.join(' ')} at the end, Node ${process.version}).
Late: from the receipt of the batch at the hub to the reader, the 50 ms of gathering included. Memory: RSS of the hub over that without a stream.

| readers | messages | p50 ms | p99 ms | max ms | KB each | CPU ms/s of the hub | ended |
|---|---|---|---|---|---|---|---|
${rows.join('\n')}
`
}
