import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { systemClock } from '#model'
import { createLogger, Metrics } from '#runtime'
import { openIdentity } from '../identity.ts'
import type { Identity, IdentityConfig, IdentityOptions } from '../types.ts'

/** A request as Node's parser gives it: raw header pairs in order, from this address. */
export function aRequest(headers: readonly string[] = [], remoteAddress = '127.0.0.1'): IncomingMessage {
  const socket = new Socket()
  Object.defineProperty(socket, 'remoteAddress', { value: remoteAddress })
  const request = new IncomingMessage(socket)
  request.rawHeaders = [...headers]
  for (let index = 0; index + 1 < headers.length; index += 2)
    request.headers[headers[index]!.toLowerCase()] ??= headers[index + 1]!
  return request
}

export const anIdentity = (config: IdentityConfig, more: Partial<IdentityOptions> = {}): Promise<Identity> =>
  openIdentity({
    config,
    clock: systemClock,
    logger: createLogger('silent'),
    metrics: new Metrics({}, { processMetrics: false }),
    ...more,
  })
