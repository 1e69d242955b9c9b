import type { VersionConverter } from '#kinds'

interface Versioned extends Record<string, unknown> {
  readonly apiVersion: string
  readonly kind: string
}

/** apiextensions.k8s.io/v1 ConversionRequest, as far as it is read. */
export interface ConversionRequest {
  readonly uid: string
  readonly desiredAPIVersion: string
  readonly objects: readonly Versioned[]
}

/** apiextensions.k8s.io/v1 ConversionResponse. */
export interface ConversionResponse {
  readonly uid: string
  readonly convertedObjects: readonly object[]
  readonly result: { readonly status: 'Success' | 'Failure'; readonly message?: string }
}

const versionOf = (apiVersion: string): readonly [group: string, version: string] => {
  const [group = '', version = ''] = apiVersion.split('/')
  return [group, version]
}

/** The objects in the version that is asked for: through the stored one, which is the one without a converter. */
export function convert(converters: readonly VersionConverter[], request: ConversionRequest): ConversionResponse {
  const { uid, desiredAPIVersion, objects } = request
  const of = (apiVersion: string, kind: string) => {
    const [group, version] = versionOf(apiVersion)
    return converters.find((one) => one.group === group && one.version === version && one.kind === kind)
  }
  const unknown = objects.find(({ kind }) => !converters.some((one) => one.kind === kind))
  if (unknown)
    return {
      uid,
      convertedObjects: [],
      result: { status: 'Failure', message: `no conversion of ${unknown.kind} to ${desiredAPIVersion} is known` },
    }
  const converted = objects.map((object) => {
    const stored = of(object.apiVersion, object.kind)?.toStored(object) ?? object
    const wanted = of(desiredAPIVersion, object.kind)?.fromStored(stored) ?? stored
    return { ...wanted, apiVersion: desiredAPIVersion }
  })
  return { uid, convertedObjects: converted, result: { status: 'Success' } }
}
