/** What an agent may have changed on its member, beside reading what it collects; chosen there when it joins. */
export type AgentRights =
  | { readonly kind: 'observe' }
  | { readonly kind: 'namespaced'; readonly namespaces: readonly string[] }
  | { readonly kind: 'full' }

export const OBSERVE: AgentRights = { kind: 'observe' }

const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const MAX_NAMESPACES = 50
/** Nobody is let into these by naming them among others: who means them means `full`. */
const RESERVED = /^kube-/

/** `observe`, `full`, or `namespaced:` with names of namespaces and commas between. @returns a sentence where it is none of them */
export function parseAgentRights(text: string): AgentRights | string {
  if (text === 'observe') return OBSERVE
  if (text === 'full') return { kind: 'full' }
  const [, listed] = /^namespaced:(.+)$/.exec(text) ?? []
  if (listed === undefined)
    return `${JSON.stringify(text.slice(0, 80))} is none of them: observe (reads, changes nothing), namespaced:NAMESPACE,… (may change these), full (may change everything)`
  const namespaces = [...new Set(listed.split(',').map((one) => one.trim()))]
  const wrong = namespaces.find((one) => !NAMESPACE.test(one) || RESERVED.test(one))
  if (wrong !== undefined)
    return `${JSON.stringify(wrong.slice(0, 80))} is no namespace that can be given away alone: lower-case letters, digits and -, not kube-…`
  if (namespaces.length > MAX_NAMESPACES) return `these are more than ${MAX_NAMESPACES} namespaces; choose full`
  return { kind: 'namespaced', namespaces }
}

/** As parseAgentRights reads it. */
export const agentRightsText = (rights: AgentRights): string =>
  rights.kind === 'namespaced' ? `namespaced:${rights.namespaces.join()}` : rights.kind

/** The account on a member in whose name its agent changes things, where it is a pod. */
export const EXECUTOR = { namespace: 'clusterpulse-system', name: 'clusterpulse-executor' } as const
