import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../platform/runtime/testing/free-port.ts'

/** Why tests with Redis cannot run here; undefined where they can. With CI_REQUIRE_ALL=1 they are never skipped. */
export const redisMissing: string | undefined =
  spawnSync('redis-server', ['--version']).status === 0 || process.env.CI_REQUIRE_ALL === '1'
    ? undefined
    : 'there is no redis-server on this machine'

export interface TestRedis extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** kill -9: what was in memory is lost */
  kill(): Promise<void>
  /** starts it again, empty, on the same port */
  start(...more: string[]): Promise<void>
}

/** A real Redis on a free port of 127.0.0.1 that keeps nothing on disk. */
export async function startRedis(...args: string[]): Promise<TestRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'redis-'))
  const port = await freePort()
  let child: ChildProcess | undefined
  const start = async (...more: string[]) => {
    const options = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', ...args, ...more]
    child = spawn('redis-server', options, { stdio: 'ignore' })
    while (!(await answers(port))) {
      if (child.exitCode !== null) throw new Error(`redis-server ended with ${child.exitCode}`)
    }
  }
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    host: '127.0.0.1',
    port,
    kill,
    start,
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

async function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('data', () => finish(true))
    socket.once('error', () => setTimeout(() => finish(false), 10))
    socket.once('connect', () => socket.write('PING\r\n'))
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
  })
}

/** Asks again until it is true; a failure after `forMs` names what was waited for. */
export async function eventually(
  what: string,
  condition: () => boolean | Promise<boolean>,
  forMs = 20_000,
): Promise<void> {
  const until = performance.now() + forMs
  while (!(await condition())) {
    if (performance.now() > until) throw new Error(`it did not come true within ${forMs} ms: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
