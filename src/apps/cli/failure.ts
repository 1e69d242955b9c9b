import { ApiProblem } from '#http'
import { FleetError } from '#model'
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
  if (error instanceof FleetError) return { text: error.message, status: 1 }
  return { text: error instanceof Error ? (error.stack ?? error.message) : String(error), status: 1 }
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
