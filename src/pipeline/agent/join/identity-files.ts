import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { FleetError } from '#model'

/** Where the hub is, and how it is known. */
export interface HubEnds {
  /** host:port, in the order they are tried */
  readonly addresses: readonly string[]
  /** SHA-256 of a CA in the chain it shows, hex, until its authorities are known */
  readonly caFingerprint?: string
  readonly serverName?: string
}

/** A request that is on its way: kept before it is sent, so that the same one is sent again. */
export interface Asking {
  readonly hub: HubEnds
  /** PEM of the authorities the hub is known by; '': by fingerprint, or those of the system */
  readonly roots: string
  readonly cluster: string
  readonly agent: string
  /** private, PEM */
  readonly key: string
  /** DER in base64 */
  readonly request: string
  /** secret of the join token; '': a renewal */
  readonly token: string
}

/** A member: certificate and key in one file, so that one is never without the other. */
export interface MemberIdentity {
  readonly hub: HubEnds
  /** PEM of the authorities the hub is known by; '': those of the system */
  readonly roots: string
  readonly cluster: string
  readonly agent: string
  readonly key: string
  /** PEM */
  readonly certificate: string
  /** SHA-256 of the secret of the join token, hex: another token means to join anew */
  readonly joinedBy: string
}

/** A file of an identity cannot be used as it is. */
export class IdentityError extends FleetError {
  override readonly name = 'IdentityError'
  readonly code = 'identity_unusable'
  readonly retryable = false
}

const ASKING = 'asking.json'
const MEMBER = 'member.json'

/** What an agent keeps of its membership: two files of mode 0600, each old or new as a whole. */
export class IdentityFiles {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  /** @throws IdentityError where it is damaged */
  async member(): Promise<MemberIdentity | undefined> {
    const fields = await this.#read(MEMBER)
    if (!fields) return undefined
    const identity = {
      ...common(fields),
      certificate: text(fields, 'certificate'),
      joinedBy: text(fields, 'joinedBy'),
    }
    if (!isPair(identity)) throw this.#damaged(MEMBER, 'its certificate is not that of its key')
    return identity
  }

  /** @throws IdentityError where it is damaged */
  async asking(): Promise<Asking | undefined> {
    const fields = await this.#read(ASKING)
    return fields && { ...common(fields), request: text(fields, 'request'), token: text(fields, 'token') }
  }

  async ask(asking: Asking): Promise<void> {
    await this.#write(ASKING, asking)
  }

  /** From now on a member by this certificate; what was asked is answered. */
  async join(identity: MemberIdentity): Promise<void> {
    await this.keep(identity)
    await this.forget()
  }

  /** The same member, with what has changed. */
  async keep(identity: MemberIdentity): Promise<void> {
    await this.#write(MEMBER, identity)
  }

  /** What was asked is not asked any more. */
  async forget(): Promise<void> {
    await rm(join(this.#directory, ASKING), { force: true })
  }

  async #read(name: string): Promise<Readonly<Record<string, unknown>> | undefined> {
    let content: string
    try {
      content = await readFile(join(this.#directory, name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    try {
      const fields: unknown = JSON.parse(content)
      if (typeof fields === 'object' && fields !== null && 'key' in fields) {
        createPrivateKey(String(fields.key))
        return { ...fields }
      }
    } catch (cause) {
      throw this.#damaged(name, 'it cannot be read', cause)
    }
    throw this.#damaged(name, 'it holds no key')
  }

  #damaged(name: string, why: string, cause?: unknown): IdentityError {
    const path = join(this.#directory, name)
    return new IdentityError(
      `${path} is damaged: ${why}; move it away and join anew with a new token (\`clusterpulse connect NAME --join\` on the hub)`,
      { cause },
    )
  }

  async #write(name: string, content: object): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: 0o700 })
    const path = join(this.#directory, name)
    await rm(`${path}.new`, { force: true })
    const file = await open(`${path}.new`, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(content)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    const folder = await open(this.#directory, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}

function common(fields: Readonly<Record<string, unknown>>) {
  const { addresses, caFingerprint, serverName } = (fields.hub ?? {}) as Readonly<Record<string, unknown>>
  return {
    hub: {
      addresses: Array.isArray(addresses) ? addresses.filter((one) => typeof one === 'string') : [],
      ...(typeof caFingerprint === 'string' && { caFingerprint }),
      ...(typeof serverName === 'string' && { serverName }),
    },
    roots: text(fields, 'roots'),
    cluster: text(fields, 'cluster'),
    agent: text(fields, 'agent'),
    key: text(fields, 'key'),
  }
}

const text = (fields: Readonly<Record<string, unknown>>, name: string): string =>
  typeof fields[name] === 'string' ? fields[name] : ''

/** Whether a certificate is for this private key. */
export function isPair({ key, certificate }: Pick<MemberIdentity, 'key' | 'certificate'>): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    return false
  }
}
