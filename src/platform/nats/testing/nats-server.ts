import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../runtime/testing/free-port.ts'
import { freeze } from '../../runtime/testing/freeze.ts'

/** One program that suites run against. */
export interface NatsProgram {
  readonly name: string
  readonly path: string
  /** why it is not here; undefined: it is. With CI_REQUIRE_ALL=1 nothing is skipped. */
  readonly missing?: string
}

const required = process.env.CI_REQUIRE_ALL === '1'
const assets = process.env.NATS_ASSETS ?? ''

function programOf(name: string, path: string | undefined, version: RegExp, missing: string): NatsProgram {
  const isHere = path !== undefined && version.test(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? '')
  const title = isHere ? name : `${name} (not run: ${missing})`
  return { name: title, path: path ?? 'NATS_ASSETS is not set', ...(!isHere && !required && { missing }) }
}

/** The oldest server that is promised and the newest. */
export const natsPrograms: readonly NatsProgram[] = [
  programOf('nats-server 2.9, or what the path has', 'nats-server', /v2\./, 'there is no nats-server on the path'),
  programOf(
    'nats-server 2.15',
    assets === '' ? undefined : join(assets, 'nats-server'),
    /v2\.15\./,
    'there is no nats-server 2.15 in NATS_ASSETS',
  ),
]

/** A Python with protobuf and nats-py. */
export const natsPython = join(assets, 'python', 'bin', 'python')
/** Why there is none; undefined where there is. */
export const natsPythonMissing: string | undefined =
  (assets !== '' && existsSync(natsPython)) || required ? undefined : 'there is no python in NATS_ASSETS'

export interface TestNats extends AsyncDisposable {
  readonly port: number
  readonly url: string
  /** kill -9; what is in streams is on disk */
  kill(): Promise<void>
  /** it runs no further, and takes what the system takes for it, until `thaw` */
  freeze(): Promise<void>
  thaw(): void
  /** again on the same port, with what is on disk; `config`: other lines of configuration than before */
  start(config?: string): Promise<void>
}

/** A real nats-server on a free port of 127.0.0.1. @param config lines of its configuration beside port and JetStream */
export async function startNats(program: NatsProgram, config = '', jetStream = 'enabled'): Promise<TestNats> {
  const directory = await mkdtemp(join(tmpdir(), 'nats-'))
  const port = await freePort()
  let child: ChildProcess | undefined
  let lines = config
  const start = async (more = lines) => {
    lines = more
    const file = join(directory, 'nats.conf')
    // What streams reserve counts against what is said here, not against the disk of this machine.
    const store = `jetstream { store_dir: "${directory}/store", max_file_store: ${2 ** 40} }\n`
    await writeFile(file, `listen: "127.0.0.1:${port}"\n${jetStream === 'enabled' ? store : ''}${lines}\n`)
    child = spawn(program.path, ['-c', file], { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.on('data', (text: Buffer) => {
      said = (said + text.toString()).slice(-4000)
    })
    while (!(await answers(port))) if (child.exitCode !== null) throw new Error(`${program.name} ended: ${said}`)
  }
  const kill = async () => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  await start()
  return {
    port,
    url: `nats://127.0.0.1:${port}`,
    kill,
    freeze: () => freeze(child),
    thaw: () => void child?.kill('SIGCONT'),
    start,
    async [Symbol.asyncDispose]() {
      await kill()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** A NATS server speaks first. */
async function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const finish = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', () => finish(true))
    socket.once('error', () => setTimeout(() => finish(false), 20))
  })
}
