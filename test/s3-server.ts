/**
 * An S3 store as a process, for tests of sinks. The folder that holds the program `versitygw` is named by S3_ASSETS;
 * scripts/build-s3.sh makes one.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../src/platform/runtime/testing/free-port.ts'
import { freeze } from '../src/platform/runtime/testing/freeze.ts'

const programOf = (folder: string) => join(folder, 'versitygw')

/** Why there is no store here; undefined where there is one. With CI_REQUIRE_ALL=1 nothing is skipped. */
export function noS3(): string | undefined {
  if (process.env.CI_REQUIRE_ALL === '1') return undefined
  const folder = process.env.S3_ASSETS
  if (!folder) return 'S3_ASSETS is not set'
  return existsSync(programOf(folder)) ? undefined : 'there is no versitygw in S3_ASSETS'
}

export interface S3Server extends AsyncDisposable {
  readonly port: number
  readonly accessKeyID: string
  readonly secretAccessKey: string
  /** SIGSTOP: it answers nobody, and takes connections; `thaw` lets it go on */
  freeze(): Promise<void>
  thaw(): void
}

/** Starts a store on the loopback, without a bucket; it ends with `Symbol.asyncDispose`, its folder too. */
export async function startS3(): Promise<S3Server> {
  const folder = await mkdtemp(join(tmpdir(), 's3-'))
  await mkdir(join(folder, 'data'))
  await mkdir(join(folder, 'meta'))
  const port = await freePort()
  const keys = { accessKeyID: 'test-key', secretAccessKey: 'test-secret-nobody-may-see' }
  const child = spawn(
    programOf(process.env.S3_ASSETS ?? ''),
    ['--port', `127.0.0.1:${port}`, 'posix', '--sidecar', join(folder, 'meta'), join(folder, 'data')],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: process.env.PATH, ROOT_ACCESS_KEY: keys.accessKeyID, ROOT_SECRET_KEY: keys.secretAccessKey },
    },
  )
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-16_384)
  })
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`the store ended: ${said}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    port,
    ...keys,
    freeze: () => freeze(child),
    thaw: () => void child.kill('SIGCONT'),
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.kill('SIGCONT')
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/`).then(
    () => true,
    () => false,
  )
