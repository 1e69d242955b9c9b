import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { type Subject, subjectAt } from '../behaviour/subject.ts'
import { type ApiListener, listenApi } from '../listen.ts'
import { ApiServer, type ApiServerOptions } from '../server.ts'

/** A server of one test; it ends with the test. */
export async function aServer(options: Partial<ApiServerOptions> = {}): Promise<ApiServer> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, ...options })
  onTestFinished(() => server[Symbol.asyncDispose]())
  return server
}

export const TOKENS = [
  { token: 'admin-token', user: 'admin', groups: ['system:masters'] },
  { token: 'viewer-token', user: 'viewer' },
] as const

/** The server behind HTTPS, and a client of it. */
export async function listening(
  server: ApiServer,
  token = 'admin-token',
): Promise<{ listener: ApiListener; client: Subject }> {
  const listener = await listenApi({ mounts: new Map([['', server]]), tokens: TOKENS })
  onTestFinished(() => listener[Symbol.asyncDispose]())
  return { listener, client: clientOf(listener, token) }
}

export function clientOf(listener: ApiListener, token = 'admin-token', prefix = ''): Subject {
  const client = subjectAt({
    url: listener.url + prefix,
    ca: listener.caPem,
    token,
    real: false,
    stop: async () => undefined,
  })
  onTestFinished(() => client[Symbol.asyncDispose]())
  return client
}

/** A directory of one test. */
export function aDirectory(): string {
  const dir = mkdtempSync(join(tmpdir(), 'apiserver-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}
