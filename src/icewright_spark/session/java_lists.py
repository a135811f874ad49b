"""Lists of Java objects worked on within the JVM, by Java's own streams: one call for all, not one for each.

A call from Python costs both sides some 0.1 ms of CPU, and a table may have a hundred thousand files. Methods become
functions by ``java.lang.invoke``, since Python's own would be called back for each object.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


class JavaLists:
    """What can be done with whole lists. ``table`` is Java's object of a table: its class loader has Iceberg's."""

    def __init__(self, jvm: Any, table: Any) -> None:
        self._jvm, self._loader = jvm, table.getClass().getClassLoader()
        self._invoke, self._lookup = jvm.java.lang.invoke, jvm.java.lang.invoke.MethodHandles.publicLookup()

    def of(self, values: Sequence[str] | Sequence[int]) -> Any:
        """A Java list of strings or of integers."""
        mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        return mapper.readValue(json.dumps(values), self._class("java.util.List"))

    def values(self, strings_or_numbers: Any) -> list[Any]:
        """A Java list of strings, numbers or nulls as Python's."""
        mapper = self._jvm.com.fasterxml.jackson.databind.ObjectMapper()
        found: list[Any] = json.loads(mapper.writeValueAsString(strings_or_numbers))
        return found

    def each(self, elements: Any, function: Any) -> Any:
        """The list of what a function says of each element."""
        return elements.stream().map(function).toList()

    def do(self, elements: Any, function: Any) -> None:
        """Call a function with each element, in order."""
        elements.stream().forEach(self.instance("java.util.function.Consumer", function))

    def picked(self, elements: Any, places: Sequence[int]) -> Any:
        """The list of the elements at these places."""
        get = self.handle("java.util.List", "get", "(I)Ljava/lang/Object;")
        return self.each(self.of(places), self._function(get.bindTo(elements)))

    def method(self, owner: str, name: str, signature: str) -> Any:
        """A method without arguments, as a function of its object.

        ``owner`` is its class, with ``/`` or ``.``, and ``signature`` a descriptor of the JVM's.
        """
        return self._function(self.handle(owner, name, signature))

    def static(self, owner: str, name: str, signature: str, second: Any) -> Any:
        """A static method of two arguments as a function of the first."""
        method = self._lookup.findStatic(self._class(owner), name, self._type(signature))
        arguments = self._array("java.lang.Object", [second])
        return self._function(self._invoke.MethodHandles.insertArguments(method, 1, arguments))

    def of_one(self, owner: str, name: str, signature: str) -> Any:
        """A static method of one argument as a function."""
        return self._function(self._lookup.findStatic(self._class(owner), name, self._type(signature)))

    def function_of(self, owner: str, name: str, signature: str, this: Any) -> Any:
        """A method of one argument, of this object, as a function of the argument."""
        return self._function(self.bound(owner, name, signature, this))

    def hidden(self, owner: str, name: str, kind: str = "java.util.function.Function") -> Any:
        """A method without arguments that is not public, as a function (of that ``kind``) of its object."""
        return self.instance(kind, self.hidden_handle(owner, name, ()))

    def hidden_handle(self, owner: str, name: str, parameters: Sequence[str]) -> Any:
        """The handle of a method that is not public, whose parameters are of these types."""
        return self._lookup.unreflect(self._hidden(owner, name, parameters))

    def call_hidden(self, owner: str, name: str, parameters: Sequence[str], arguments: Sequence[Any]) -> Any:
        """What a static method says that is not public."""
        array = self._array("java.lang.Object", arguments)
        return self._hidden(owner, name, parameters).invoke(None, array)

    def _hidden(self, owner: str, name: str, parameters: Sequence[str]) -> Any:
        kinds = self._array("java.lang.Class", [self._class(each) for each in parameters])
        method = self._class(owner).getDeclaredMethod(name, kinds)
        method.setAccessible(True)
        return method

    def _array(self, kind: str, values: Sequence[Any]) -> Any:
        array = self._jvm.java.lang.reflect.Array.newInstance(self._class(kind), len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array

    def bound(self, owner: str, name: str, signature: str, this: Any) -> Any:
        """A method of one argument as a function of that."""
        return self.handle(owner, name, signature).bindTo(this)

    def handle(self, owner: str, name: str, signature: str) -> Any:
        """The handle of a method, whose first argument is its object."""
        return self._lookup.findVirtual(self._class(owner), name, self._type(signature))

    def chained(self, first: Any, *others: Any) -> Any:
        """A handle of what each of these handles of one argument says of what the one before it said."""
        for each in others:
            typed = each.asType(each.type().changeParameterType(0, first.type().returnType()))
            first = self._invoke.MethodHandles.filterReturnValue(first, typed)
        return first

    def instance(self, kind: str, handle: Any) -> Any:
        """An object of an interface with one method, which is this handle."""
        return self._invoke.MethodHandleProxies.asInterfaceInstance(self._class(kind), handle)

    def _class(self, name: str) -> Any:
        if name == "boolean":
            return self._jvm.java.lang.Boolean.TYPE
        if name == "long":
            return self._jvm.java.lang.Long.TYPE
        return self._loader.loadClass(name.replace("/", "."))

    def _type(self, signature: str) -> Any:
        return self._invoke.MethodType.fromMethodDescriptorString(signature, self._loader)

    def _function(self, handle: Any) -> Any:
        return self.instance("java.util.function.Function", handle)
