import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SinkError } from '../sink.ts'

export interface GitRun {
  readonly environment: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** what it reads */
  readonly input?: AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>
}

/** How a run ended; `code` is negative where a signal ended it. */
export interface GitEnd {
  readonly code: number
  readonly stdout: Buffer
  /** its last 16 KiB */
  readonly stderr: string
}

/** of standard output, bytes */
const MAX_OUTPUT = 256 * 1024 * 1024
const MAX_MESSAGES = 16 * 1024

/**
 * Runs git to its end. What it starts itself (ssh, helpers of transports) is of its process group, and ends with it.
 * @throws the reason of the signal, once nothing of it runs any more
 */
export async function runGit(args: readonly string[], { environment, signal, input = [] }: GitRun): Promise<GitEnd> {
  signal.throwIfAborted()
  const child = spawn('git', args, { env: { ...environment }, stdio: ['pipe', 'pipe', 'pipe'], detached: true })
  const kill = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  signal.addEventListener('abort', kill, { once: true })
  const output: Buffer[] = []
  let bytes = 0
  let messages = ''
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MAX_OUTPUT) kill()
    else output.push(chunk)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = `${messages}${text}`.slice(-MAX_MESSAGES)
  })
  // It may end before it has read all: how it ends says why.
  const fed = pipeline(Readable.from(input), child.stdin).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') failure ??= error
    kill()
  })
  let failure: Error | undefined
  try {
    const [code] = (await once(child, 'close')) as [number | null]
    await fed
    signal.throwIfAborted()
    if (failure) throw failure
    return { code: code ?? -1, stdout: Buffer.concat(output), stderr: messages }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || child.pid !== undefined) throw error
    throw new SinkError('terminal', 'the program git is not there: install git, and openssh-client for ssh', {
      cause: error,
    })
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
  }
}
