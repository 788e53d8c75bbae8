from kaspar.records import layout as layout
