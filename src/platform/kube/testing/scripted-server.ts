import 'reflect-metadata'
import { webcrypto } from 'node:crypto'
import { createServer as createHttp, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttps } from 'node:https'
import type { AddressInfo } from 'node:net'
import * as x509 from '@peculiar/x509'
import type { ClusterAccess } from '../types.ts'

/** What a test's server does with one request. */
export type Script = (
  request: IncomingMessage & { readonly body: string },
  response: ServerResponse,
) => void | Promise<void>

export interface ScriptedServer extends AsyncDisposable {
  readonly url: string
  /** method and path with query, in order of arrival */
  readonly requests: string[]
  readonly connections: () => number
  /** connections that are open now */
  readonly open: () => number
  access(more?: Partial<ClusterAccess>): ClusterAccess
}

export interface Identity {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

const pem = (label: string, der: ArrayBuffer) =>
  `-----BEGIN ${label}-----\n${Buffer.from(der).toString('base64').replace(/.{64}/g, '$&\n')}\n-----END ${label}-----\n`

/** A new CA and a certificate of it: for 127.0.0.1 and localhost, or for another name. */
export async function identity(options: { name?: string; notAfter?: Date } = {}): Promise<Identity> {
  const crypto = webcrypto as Parameters<typeof x509.X509CertificateGenerator.createSelfSigned>[1] & typeof webcrypto
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const [caKeys, keys] = await Promise.all(
    [1, 2].map(() => crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])),
  )
  const notBefore = new Date(Date.now() - 86_400_000)
  const notAfter = options.notAfter ?? new Date(Date.now() + 86_400_000)
  const ca = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: 'CN=test CA',
      serialNumber: '01',
      notBefore,
      notAfter: new Date(Date.now() + 86_400_000),
      keys: caKeys!,
      signingAlgorithm: algorithm,
      extensions: [new x509.BasicConstraintsExtension(true, 1, true)],
    },
    crypto,
  )
  const names = options.name
    ? [{ type: 'dns' as const, value: options.name }]
    : [
        { type: 'dns' as const, value: 'localhost' },
        { type: 'ip' as const, value: '127.0.0.1' },
      ]
  const leaf = await x509.X509CertificateGenerator.create(
    {
      subject: 'CN=test',
      issuer: ca.subject,
      serialNumber: '02',
      notBefore,
      notAfter,
      publicKey: keys!.publicKey,
      signingKey: caKeys!.privateKey,
      signingAlgorithm: algorithm,
      extensions: [new x509.SubjectAlternativeNameExtension(names)],
    },
    crypto,
  )
  const key = pem('PRIVATE KEY', await crypto.subtle.exportKey('pkcs8', keys!.privateKey))
  return { ca: ca.toString('pem'), cert: leaf.toString('pem'), key }
}

/** A server on a free port of the loopback; with an identity it speaks TLS. `clientCa` makes it ask for certificates. */
export async function scriptedServer(script: Script, tls?: Identity & { clientCa?: string }): Promise<ScriptedServer> {
  const requests: string[] = []
  let connections = 0
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    requests.push(`${request.method} ${request.url}`)
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    await script(Object.assign(request, { body: Buffer.concat(chunks).toString('utf8') }), response)
  }
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    // A client that leaves in the middle is part of the scripts.
    handle(request, response).catch(() => response.destroy())
  }
  const server: Server = tls
    ? createHttps(
        { cert: tls.cert, key: tls.key, ...(tls.clientCa ? { requestCert: true, ca: tls.clientCa } : {}) },
        answer,
      )
    : createHttp(answer)
  server.on(tls ? 'secureConnection' : 'connection', () => connections++)
  let open = 0
  server.on('connection', (socket) => {
    open++
    socket.once('close', () => open--)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `${tls ? 'https' : 'http'}://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    connections: () => connections,
    open: () => open,
    access: (more = {}) => ({
      server: url,
      verifyTls: true,
      credentials: { kind: 'none' },
      ...(tls ? { ca: tls.ca } : {}),
      ...more,
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

export function status(
  response: ServerResponse,
  code: number,
  reason: string,
  message = '',
  headers: Record<string, string> = {},
): void {
  json(response, code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message }, headers)
}

/** A clock whose sleepers wake when the test says so. */
export class ManualClock {
  #now = 1_000_000
  readonly #sleepers = new Set<{ at: number; wake: () => void }>()

  now(): number {
    return this.#now
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const sleeper = {
        at: this.#now + ms,
        wake: () => {
          this.#sleepers.delete(sleeper)
          signal?.removeEventListener('abort', sleeper.wake)
          resolve()
        },
      }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake, { once: true })
    })
  }

  /** how long until each sleeper's time, ms, soonest first */
  get waits(): number[] {
    return [...this.#sleepers].map((sleeper) => sleeper.at - this.#now).sort((a, b) => a - b)
  }

  advance(ms: number): void {
    this.#now += ms
    for (const sleeper of [...this.#sleepers]) if (sleeper.at <= this.#now) sleeper.wake()
  }
}

/** Waits for a condition, never for a time; the test's own timeout is the bound. */
export async function until<T>(condition: () => T | undefined | false): Promise<T> {
  for (;;) {
    const value = condition()
    if (value !== undefined && value !== false) return value
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
