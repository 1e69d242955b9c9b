import { AuthorityChangedError, type AuthorityStore, AuthorityUnusableError } from '#authority'
import { isKubeError, type KubeClient, type ObjectKey, secrets, whole } from '#kube'

const FIELD = 'authority.json'
const secret = whole(secrets)

/** Keeps a CA in a Secret, which several processes may share. One that was deleted is written again by who has it. */
export function secretStore(kube: KubeClient, key: Required<ObjectKey>): AuthorityStore {
  const body = (text: string, resourceVersion?: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { ...key, ...(resourceVersion !== undefined && { resourceVersion }) },
    type: 'Opaque',
    data: { [FIELD]: Buffer.from(text).toString('base64') },
  })
  const create = async (text: string) => versionOf(await kube.create(secret, body(text)))
  const replace = async (text: string, over?: string) => {
    try {
      return versionOf(await kube.replace(secret, body(text, over)))
    } catch (error) {
      if (isKubeError(error, 'not_found')) return create(text)
      throw error
    }
  }
  return {
    async read() {
      const kept = await kube.get(secret, key)
      if (!kept) return undefined
      const data = (kept.data as Readonly<Record<string, string>> | undefined)?.[FIELD]
      if (!data)
        throw new AuthorityUnusableError(
          `the Secret ${key.namespace}/${key.name} should hold the hub's CA in ${FIELD}, and does not: put it back from a backup, or delete it to begin anew`,
        )
      return { text: Buffer.from(data, 'base64').toString(), version: versionOf(kept) }
    },
    async write(text, over) {
      try {
        return over === undefined ? await create(text) : await replace(text, over)
      } catch (error) {
        if (isKubeError(error, 'conflict') || isKubeError(error, 'already_exists')) throw new AuthorityChangedError()
        throw error
      }
    },
    mend: (text) => replace(text),
  }
}

const versionOf = ({ metadata }: { readonly metadata: { readonly resourceVersion?: string } }): string =>
  metadata.resourceVersion ?? ''
