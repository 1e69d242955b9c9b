import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK } from 'jose'
import Provider from 'oidc-provider'

export interface Person {
  readonly email?: string
  readonly email_verified?: boolean
  readonly preferred_username?: string
  readonly groups?: readonly string[]
}

export interface ProviderOptions {
  readonly people: Readonly<Record<string, Person>>
  readonly client?: Readonly<Record<string, unknown>>
  readonly configuration?: Readonly<Record<string, unknown>>
}

export const clientSecret = 'a-secret-of-the-client-that-is-long'

/** A complete OpenID provider on a port of the loopback, with its development pages for sign-in and consent. */
export class OpenIdProvider implements AsyncDisposable {
  readonly issuer: string
  /** paths that were asked for, in order */
  readonly seen: string[] = []
  /** answers instead */
  trouble: RequestListener | undefined
  readonly #options: ProviderOptions
  readonly #server: ReturnType<typeof createServer>
  #handler: RequestListener = (_, response) => response.writeHead(503).end()

  private constructor(options: ProviderOptions, server: ReturnType<typeof createServer>) {
    this.#options = options
    this.#server = server
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => {
      this.seen.push(new URL(request.url ?? '/', this.issuer).pathname)
      ;(this.trouble ?? this.#handler)(request, response)
    })
  }

  static async start(options: ProviderOptions): Promise<OpenIdProvider> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const provider = new OpenIdProvider(options, server)
    await provider.rotate()
    return provider
  }

  /** New keys for everything it signs from now on; the old ones are gone. */
  async rotate(): Promise<void> {
    const { people, client, configuration } = this.#options
    const provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: 'fleet',
          client_secret: clientSecret,
          redirect_uris: ['https://pulse.example/api/v1/auth/callback'],
          post_logout_redirect_uris: ['https://pulse.example/'],
          ...client,
        },
      ],
      jwks: { keys: [await signingKey()] },
      clientDefaults: { id_token_signed_response_alg: 'ES256' },
      enabledJWA: { idTokenSigningAlgValues: ['ES256'] },
      cookies: { keys: ['for tests alone'] },
      claims: {
        openid: ['sub'],
        email: ['email', 'email_verified'],
        profile: ['preferred_username'],
        groups: ['groups'],
      },
      findAccount: (_: unknown, id: string) =>
        Object.hasOwn(people, id) ? { accountId: id, claims: () => ({ sub: id, ...people[id] }) } : undefined,
      ...configuration,
    })
    this.#handler = provider.callback()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

async function signingKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  return { ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' }
}
