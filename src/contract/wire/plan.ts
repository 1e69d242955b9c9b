import type { Plan } from '#model'
import { WireError } from './errors.ts'

/** A plan as the bytes of a PlanUpdate, and as an agent keeps it on disk. */
export function encodePlan(plan: Plan): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(plan))
}

/**
 * What encodePlan wrote. Fields we do not know are newer than we are, and left out.
 * @throws WireError where the bytes are no plan: intervals are whole milliseconds above 0
 */
export function decodePlan(bytes: Uint8Array): Plan {
  const { version, intervalMs, timeoutMs, operatorScanIntervalMs, sources, resources, refreshMs, kubelets } =
    fieldsOf(bytes)
  if (typeof version !== 'string') throw new WireError('the plan has no version')
  if (!Array.isArray(sources)) throw new WireError('the plan has no list of sources')
  return {
    version,
    intervalMs: duration('intervalMs', intervalMs),
    timeoutMs: duration('timeoutMs', timeoutMs),
    operatorScanIntervalMs: duration('operatorScanIntervalMs', operatorScanIntervalMs),
    sources,
    ...(Array.isArray(resources) && { resources: resources.filter((name) => typeof name === 'string') }),
    ...(refreshMs !== undefined && { refreshMs: duration('refreshMs', refreshMs) }),
    ...(typeof kubelets === 'string' && { kubelets }),
  }
}

function fieldsOf(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw new WireError('the plan is no JSON', { cause })
  }
  if (typeof value !== 'object' || value === null) throw new WireError('the plan is no object')
  // An object of JSON, whatever its fields.
  return value as Record<string, unknown>
}

function duration(name: string, value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value
  throw new WireError(`the plan's ${name} is no time above 0`)
}
