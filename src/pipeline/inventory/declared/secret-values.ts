import { isKubeError, type KubeClient, secrets } from '#kube'
import type { Blocked } from '../bindings/plan.ts'

/** Values of a Secret, and which version of it they are of. */
export interface SecretValues {
  readonly version: string
  readonly values: Readonly<Record<string, Uint8Array>>
}

/** What came of reading a Secret. */
export type SecretAnswer =
  | { readonly kind: 'read'; readonly secret: SecretValues }
  | { readonly kind: 'refused'; readonly blocked: Blocked }

/**
 * Reads one Secret by its name. Absent, forbidden and unreachable are different answers.
 * @param kept what was read before: what is told again while the API is away
 */
export async function readSecret(
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  kept: SecretValues | undefined,
  signal: AbortSignal,
): Promise<SecretAnswer> {
  const shown = `${key.namespace}/${key.name}`
  try {
    const object = await kube.get(secrets, key, signal)
    if (!object)
      return refused('SecretNotFound', `there is no Secret ${shown}: create it, or name another one`, 'terminal')
    const { uid = '', resourceVersion = '' } = object.metadata
    const { data } = object as { readonly data?: Readonly<Record<string, string>> }
    const values = Object.fromEntries(
      Object.entries(data ?? {}).map(([name, text]) => [name, Buffer.from(text, 'base64')]),
    )
    return { kind: 'read', secret: { version: `${uid}@${resourceVersion}`, values } }
  } catch (error) {
    signal.throwIfAborted()
    if (isKubeError(error, 'forbidden'))
      return refused(
        'SecretForbidden',
        `the agent may not read the Secret ${shown}: give it a Role for \`get\` on it`,
        'forbidden',
      )
    if (!isKubeError(error)) throw error
    if (kept) return { kind: 'read', secret: kept }
    return refused('SecretUnreachable', `the Secret ${shown} could not be read: ${error.message}`, 'transient')
  }
}

const refused = (reason: string, message: string, errorClass: Blocked['errorClass']): SecretAnswer => ({
  kind: 'refused',
  blocked: { reason, message, errorClass },
})
