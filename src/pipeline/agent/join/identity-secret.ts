import { isKubeError, type KubeClient, type ObjectKey, secrets } from '#kube'
import { type Asking, askingIn, IdentityError, type IdentityStore, type MemberIdentity, memberIn } from './identity.ts'

const ASKING = 'asking.json'
const MEMBER = 'member.json'

/**
 * An identity in a Secret that is there already, for an agent that is a pod: it needs `get` and `patch` of that one and no other. What is
 * written together is one patch.
 */
export class IdentitySecret implements IdentityStore {
  readonly place: string
  readonly #kube: KubeClient
  readonly #key: ObjectKey

  constructor(kube: KubeClient, key: { readonly namespace: string; readonly name: string }) {
    this.#kube = kube
    this.#key = key
    this.place = `Secret ${key.namespace}/${key.name}`
  }

  async member(): Promise<MemberIdentity | undefined> {
    const content = await this.#read(MEMBER)
    return content === undefined ? undefined : memberIn(content, `${MEMBER} in ${this.place}`)
  }

  async asking(): Promise<Asking | undefined> {
    const content = await this.#read(ASKING)
    return content === undefined ? undefined : askingIn(content, `${ASKING} in ${this.place}`)
  }

  ask(asking: Asking): Promise<void> {
    return this.#write({ [ASKING]: encoded(asking) })
  }

  join(identity: MemberIdentity): Promise<void> {
    return this.#write({ [MEMBER]: encoded(identity), [ASKING]: null })
  }

  keep(identity: MemberIdentity): Promise<void> {
    return this.#write({ [MEMBER]: encoded(identity) })
  }

  forget(): Promise<void> {
    return this.#write({ [ASKING]: null })
  }

  async #read(name: string): Promise<string | undefined> {
    const found = await this.#kube.get(secrets, this.#key)
    if (!found) throw this.#missing()
    const value = (found.data as Readonly<Record<string, string>> | undefined)?.[name]
    return value ? Buffer.from(value, 'base64').toString() : undefined
  }

  async #write(data: Readonly<Record<string, string | null>>): Promise<void> {
    try {
      await this.#kube.patch(secrets, this.#key, { data }, { kind: 'merge' })
    } catch (cause) {
      if (isKubeError(cause, 'not_found')) throw this.#missing(cause)
      throw cause
    }
  }

  #missing(cause?: unknown): IdentityError {
    return new IdentityError(
      `${this.place} is not there, and the agent keeps its key and its certificate in it; apply what \`clusterpulse connect NAME -o manifest\` prints on the hub`,
      { cause },
    )
  }
}

const encoded = (content: object): string => Buffer.from(JSON.stringify(content)).toString('base64')
