import { request } from 'node:https'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../../../../test/real-apiserver.ts'

/** For suites that hold our functions against the original. */
export interface Original {
  call(method: string, path: string, body?: unknown, type?: string): Promise<Answer>
  stop(): Promise<void>
}

export interface Answer {
  readonly code: number
  readonly body: Record<string, unknown>
}

/** What a suite must skip for, and says in its title; undefined where nothing is missing. */
export const missingOriginal = (): string | undefined =>
  process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()

export async function startOriginal(): Promise<Original> {
  const server = await startRealApiServer()
  if (!server) throw new Error('there is no real kube-apiserver')
  return { call: (method, path, body, type) => call(server, method, path, body, type), stop: () => server.stop() }
}

function call(server: RealApiServer, method: string, path: string, body?: unknown, type = 'application/json') {
  const { server: origin, ca, credentials } = server.access
  const token = credentials.kind === 'token' ? credentials.token : ''
  return new Promise<Answer>((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': type }
    const sent = request(`${origin}${path}`, { method, ca, headers }, (answer) => {
      const chunks: Buffer[] = []
      answer.on('data', (chunk: Buffer) => chunks.push(chunk))
      answer.on('end', () => resolve({ code: answer.statusCode ?? 0, body: parsed(Buffer.concat(chunks).toString()) }))
    })
    sent.on('error', reject)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })
}

/** A kind that is not served yet is answered in plain text. */
const parsed = (text: string): Record<string, unknown> =>
  text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : { message: text }
