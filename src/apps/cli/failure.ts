import { ApiProblem } from '#http'
import { codedMessage, FleetError } from '#model'
import { printable } from './terminal.ts'

/** No hub answers at the address: scripts may wait and try again. */
export const UNREACHABLE = 3

export interface Failure {
  /** for people, one line; a mistake of our own with its stack */
  readonly text: string
  readonly status: number
}

export function failureOf(error: unknown): Failure {
  if (error instanceof ApiProblem) return { text: printable(sentence(error)), status: statusOf(error) }
  if (error instanceof FleetError) return { text: codedMessage(error), status: 1 }
  if (isOfSystem(error)) return { text: printable(refusedBySystem(error)), status: 1 }
  return { text: error instanceof Error ? (error.stack ?? error.message) : String(error), status: 1 }
}

interface SystemError extends Error {
  readonly code: string
  readonly path: string
}

const isOfSystem = (error: unknown): error is SystemError =>
  error instanceof Error && typeof (error as Partial<SystemError>).path === 'string' && 'syscall' in error

/** What the system said of a file, and what may be done. @see errno(3) */
const refusals: Readonly<Record<string, string>> = {
  EACCES: 'this user may not use it; give it to the user who runs this, or name another place',
  EPERM: 'this user may not change it; give it to the user who runs this, or name another place',
  EROFS: 'it is on a file system that is read-only; name another place',
  ENOENT: 'it is not there, or the folder it should be in is not; check how it is written',
  ENOTDIR: 'a part of it is a file and no folder; name another place',
  EISDIR: 'it is a folder, and a file is needed; move it away, or name another place',
  EEXIST: 'something else is there already; move it away, or name another place',
  ENOSPC: 'the disk is full; make room, or name another place',
  EDQUOT: "the user's share of the disk is used up; make room, or name another place",
  EMFILE: 'this process has as many files open as it may; raise its limit (ulimit -n)',
}

function refusedBySystem({ path, code, message }: SystemError): string {
  const why = refusals[code]
  return why === undefined ? message : `${path} cannot be used (${code}): ${why}`
}

const statusOf = ({ status }: ApiProblem): number => (status === 0 ? UNREACHABLE : 1)

/** Not signed in, not allowed, not there and no hub at all are four answers. */
function sentence({ status, code, message, requestId }: ApiProblem): string {
  const said = requestId === '' ? message : `${message} (request ${requestId})`
  if (status === 0)
    return `${message}: is a hub running there? Start one with \`clusterpulse up\`, or name its address with --server or CLUSTERPULSE_SERVER`
  if (code === 'no_answer') return `${message}: that is no ClusterPulse hub; name its address with --server`
  if (status === 401) return `not signed in: ${said}; put a bearer token of yours into CLUSTERPULSE_TOKEN`
  if (status === 403) return `not allowed: ${said}; \`clusterpulse access explain\` says why`
  return said
}
