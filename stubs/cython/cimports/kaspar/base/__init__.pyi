from kaspar.base import primitives as primitives
