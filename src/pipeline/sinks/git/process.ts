import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { SinkError } from '../sink.ts'

export interface GitRun {
  readonly environment: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** of standard output, bytes; more than that ends it */
  readonly maxOutput?: number
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

/** The paths of half a million files. */
const MAX_OUTPUT = 64 * 2 ** 20
const MAX_MESSAGES = 16 * 1024

/** Of each file that git writes, a pack among them. */
export const MAX_FILE_BYTES = 256 * 2 ** 20
/** Of addresses of each process of git: what a server sends is unpacked by it. */
const MAX_MEMORY_BYTES = 768 * 2 ** 20
/**
 * Of git itself, of ssh and of the helpers that they start: what they may take of the machine, whatever a server sends them. A shell that
 * knows no such limit goes on without.
 */
const LIMITED = `ulimit -f ${MAX_FILE_BYTES / 512} 2>/dev/null; ulimit -v ${MAX_MEMORY_BYTES / 1024} 2>/dev/null; ulimit -c 0 2>/dev/null; exec git "$@"`
/** By a shell where there is no such program. */
const NOT_FOUND = 127

/**
 * Runs git to its end. What it starts itself (ssh, helpers of transports) is of its process group, and ends with it.
 * @throws the reason of the signal, once nothing of it runs any more
 */
export async function runGit(
  args: readonly string[],
  { environment, signal, maxOutput = MAX_OUTPUT, input = [] }: GitRun,
): Promise<GitEnd> {
  signal.throwIfAborted()
  const child = spawn('sh', ['-c', LIMITED, 'git', ...args], {
    env: { ...environment, MALLOC_ARENA_MAX: '2' },
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  })
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
    if (bytes <= maxOutput) output.push(chunk)
    else {
      failure ??= new SinkError('terminal', `git has more than ${maxOutput} bytes to tell of the branch`)
      kill()
    }
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    messages = `${messages}${text}`.slice(-MAX_MESSAGES)
  })
  let failure: Error | undefined
  // It may end before it has read all: how it ends says why.
  const fed = pipeline(Readable.from(input), child.stdin).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') failure ??= error
    kill()
  })
  try {
    const [code] = (await once(child, 'close')) as [number | null]
    await fed
    signal.throwIfAborted()
    if (failure) throw failure
    if (code === NOT_FOUND && /\bgit: .*not found/.test(messages)) throw notThere()
    return { code: code ?? -1, stdout: Buffer.concat(output), stderr: messages }
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ENOENT' && child.pid === undefined ? notThere() : error
  } finally {
    signal.removeEventListener('abort', kill)
    kill()
  }
}

const notThere = (): SinkError =>
  new SinkError('terminal', 'the program git is not there: install git, and openssh-client for ssh')
