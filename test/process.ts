/** Starts the built executable as people do, with an environment of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { slowness } from '../src/platform/runtime/testing/slowness.ts'

const bin = join(dirname(fileURLToPath(import.meta.url)), '..', 'bin', 'clusterpulse.js')

export interface Running extends AsyncDisposable {
  readonly pid: number
  stdout(): string
  stderr(): string
  /** Resolves when standard output matches, with the match; rejects when the process ends before. */
  says(pattern: RegExp, withinMs?: number): Promise<RegExpExecArray>
  kill(signal: NodeJS.Signals): Promise<number | null>
  /** exit code; null when a signal ended it */
  ended(): Promise<number | null>
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly command?: string
  readonly cwd?: string
  readonly input?: string
  /** standard input ends with this process, and not before */
  readonly holdsInput?: boolean
}

/** Two programs of a machine do not want the same port: what a test does not choose is one that hardly another takes. */
const usual = () => ({
  // The demo makes up a past for as long as history reaches: that of an hour is no work beside that of a month.
  HISTORY_RETENTION: '1h',
  // A manager takes none below 1024, nor a free one: below those that the system gives away.
  INGESTER_PORT: String(randomInt(10_000, 32_000)),
  METRICS_BIND_ADDRESS: '127.0.0.1:0',
  HEALTH_PROBE_BIND_ADDRESS: '127.0.0.1:0',
  // As in vitest.config.ts: programs get no environment of ours but this.
  GOGC: '400',
})

/** A kubeconfig of one cluster that is not there: for a hub whose members are not what a test is about. The demo takes ten times its work. */
export async function nobodysKubeconfig(folder: string): Promise<string> {
  const path = join(folder, 'nobody.yaml')
  const named = (what: object) => [{ name: 'nobody', ...what }]
  await writeFile(
    path,
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'nobody' },
      clusters: named({ cluster: { server: 'https://127.0.0.1:1' } }),
      users: named({ user: { token: 'any' } }),
      contexts: named({ context: { cluster: 'nobody', user: 'nobody' } }),
    }),
  )
  return path
}

/** `PATH` and an empty home: no kubeconfig of the machine gets in. */
export function clusterpulse(args: readonly string[], options: RunOptions = {}): Running {
  const { env = {}, command, cwd, input, holdsInput = false } = options
  const child = spawn(command ?? process.execPath, command ? [...args] : [bin, ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...usual(), ...env },
    stdio: [input === undefined && !holdsInput ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
  })
  if (input !== undefined) child.stdin?.end(input)
  return watched(child)
}

/** Any other program, such as kubectl. */
export const program = (command: string, args: readonly string[], options: RunOptions = {}): Running =>
  clusterpulse(args, { ...options, command })

function watched(child: ChildProcess): Running {
  let out = ''
  let err = ''
  let wake: () => void = () => undefined
  const over = once(child, 'close').then(([code]) => {
    wake()
    return code as number | null
  })
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString()
    wake()
  })
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk.toString()
  })
  const isOver = () => child.exitCode !== null || child.signalCode !== null
  return {
    pid: child.pid ?? 0,
    stdout: () => out,
    stderr: () => err,
    async says(pattern, atMostMs = 120_000) {
      const withinMs = atMostMs * slowness
      const deadline = Date.now() + withinMs
      for (;;) {
        const match = pattern.exec(out)
        if (match) return match
        if (isOver())
          throw new Error(`ended (${child.exitCode ?? child.signalCode}) before it said ${pattern}\n${out}\n${err}`)
        const left = deadline - Date.now()
        if (left <= 0) throw new Error(`did not say ${pattern} within ${withinMs} ms\n${out}\n${err}`)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, left)
          wake = () => {
            clearTimeout(timer)
            resolve()
          }
        })
      }
    },
    async kill(signal) {
      if (!isOver()) child.kill(signal)
      return over
    },
    ended: () => over,
    async [Symbol.asyncDispose]() {
      if (!isOver()) child.kill('SIGKILL')
      await over
    },
  }
}

/**
 * Asks again until the answer satisfies; says what the last answer was when it never did. What takes long to answer, or long to come,
 * is asked less often: a machine that is busy with the question answers late, and half of the suite's time is such waiting. A machine
 * that is slow has longer.
 */
export async function eventually<T>(
  ask: () => Promise<T>,
  satisfies: (answer: T) => boolean,
  atMostMs = 60_000,
): Promise<T> {
  const withinMs = atMostMs * slowness
  const deadline = Date.now() + withinMs
  const began = performance.now()
  let last: unknown
  while (Date.now() < deadline) {
    const asked = performance.now()
    try {
      const answer = await ask()
      if (satisfies(answer)) return answer
      last = answer
    } catch (error) {
      last = error
    }
    const now = performance.now()
    const pauseMs = Math.min(Math.max(50, 2 * (now - asked), Math.min((now - began) / 10, 500)), 1_000)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  throw new Error(
    `not within ${withinMs} ms; last: ${last instanceof Error ? last.stack : JSON.stringify(last)?.slice(0, 2000)}`,
  )
}
