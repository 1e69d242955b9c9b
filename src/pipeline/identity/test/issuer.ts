import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'
import type { Clock } from '#model'

export interface SigningKey {
  readonly kid: string
  readonly alg: string
  readonly privateKey: CryptoKey
  readonly jwk: JWK
}

export async function aKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true })
  return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } }
}

/** An issuer of tokens on a port of its own: discovery, keys, and a switch for bad days. */
export class Issuer implements AsyncDisposable {
  keys: readonly JWK[] = []
  /** requests for keys so far */
  asked = 0
  /** answers instead of the keys */
  trouble: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  readonly #server = createServer((request, response) => this.#answer(request, response))

  static async start(...keys: readonly SigningKey[]): Promise<Issuer> {
    const issuer = new Issuer()
    issuer.keys = keys.map(({ jwk }) => jwk)
    await new Promise<void>((resolve) => issuer.#server.listen(0, '127.0.0.1', resolve))
    return issuer
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === '/keys') this.asked++
    const json = (value: unknown) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value))
    if (request.url === '/.well-known/openid-configuration') json({ issuer: this.url, jwks_uri: `${this.url}/keys` })
    else if (request.url !== '/keys') response.writeHead(404).end()
    else if (this.trouble) this.trouble(request, response)
    else json({ keys: this.keys })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

export interface TokenFacts {
  readonly issuer: string
  readonly clock: Clock
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
}

/** A good token for `fleet`, an hour long, with what differs. A claim that is undefined is left out. */
export function aToken(key: SigningKey, { issuer, clock, claims = {}, header = {} }: TokenFacts): Promise<string> {
  const now = Math.floor(clock.now() / 1000)
  const all = { iss: issuer, aud: 'fleet', sub: 'ann', iat: now, nbf: now, exp: now + 3600, ...claims }
  return new SignJWT(JSON.parse(JSON.stringify(all)))
    .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
    .sign(key.privateKey)
}
