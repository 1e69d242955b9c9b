import type { ApiObject, ResourceName } from '#apiserver'
import type { ObjectSink } from '../types.ts'

/** Keeps objects in a map, as an API store would show them. */
export class MapSink implements ObjectSink {
  readonly objects = new Map<string, ApiObject>()

  put(resource: ResourceName, object: ApiObject): void {
    this.objects.set(pathOf(resource, object.metadata), object)
  }

  delete(resource: ResourceName, key: { readonly name: string; readonly namespace?: string }): void {
    this.objects.delete(pathOf(resource, key))
  }

  list(plural: string): ApiObject[] {
    return [...this.objects].filter(([path]) => path.startsWith(`${plural}/`)).map(([, object]) => object)
  }
}

const pathOf = ({ plural }: ResourceName, { name, namespace }: { name: string; namespace?: string }): string =>
  `${plural}/${namespace ?? ''}/${name}`
