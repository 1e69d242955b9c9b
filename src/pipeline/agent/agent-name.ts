import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'

const MAX_HOST = 50

/** What the hub calls this start of the agent where two use one identity: the name of its machine, and a part no other start has. */
export function agentName(host: string = hostname()): string {
  const known = host.replaceAll(/[^A-Za-z0-9.-]/g, '').slice(0, MAX_HOST)
  return `${known || 'agent'}-${randomBytes(4).toString('hex')}`
}
