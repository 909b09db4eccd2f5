/* row_images.pml - rows with the committed image in place and the intended one aside; tombstones; plain and native row writes.
 *
 * As in atomicity.pml: one write = one atomic step; `world` is the network (everything ever sent may arrive again, until a
 * tombstone's retention ends) and all bystanders at once; an owner may stop anywhere. The primary of command a is its own
 * slot p[a] (the first of $tx-<uuid>; an event slot behaves the same, see atomicity.pml). One attempt per command: a retry is
 * a new transaction. Image a+1 = "what command a put"; 0 = no image (absent, or a tombstone).
 *
 * A plain write has no primary. It leaves its id in the row (`wr`), where every later write and every tombstone keeps it until
 * it is aged, that is for the retention. It never writes upon an absent row: it lays a tombstone first, whose revision is used
 * for one request only, and writes upon that; so each base is of a revision that never comes back. Its owner says aborted of
 * a base that has moved on without it, or that it has moved on itself, by a new revision. Over both rows it is one atomic
 * request, and row 0 is the one that tells its outcome.
 *
 * The mutation -DPARTS: what one atomic request writes need not show at once. A row that is late shows to reads as it was
 * before; writes and their conditions meet it as it is.
 */
#define OPEN 0
#define VOID 1
#define COMM 2
#define PUT 1
#define DEL 2
#define TX 0
#define PLAIN 1        /* rows alone, row 0 among them: one conditional write, which goes upon a row or a tombstone there */
#define NATIVE 2       /* all rows and p[a] in one atomic conditional write */
#define NR 2
#define B(a) (1<<(a))
#if SCEN==1            /* insert, delete, insert again */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,TX}; 
#elif SCEN==2          /* all of row 0, two of them plain: insert and delete */
#define NO 3
hidden byte w[6] = {PUT,0, DEL,0, PUT,0};       hidden byte kind[3] = {TX,PLAIN,PLAIN};
#elif SCEN==3          /* with a native delete and a plain insert */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,0};   hidden byte kind[3] = {TX,NATIVE,PLAIN};
#elif SCEN==4          /* rows there at the start (-DTHERE): a slow update, a delete, an insert */
#define NO 3
hidden byte w[6] = {PUT,PUT, DEL,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,NATIVE};
#elif SCEN==5          /* everybody writes both rows: snapshots must be whole */
#define NO 2
hidden byte w[6] = {PUT,PUT, PUT,PUT, 0,0};     hidden byte kind[3] = {TX,TX,TX};
#elif SCEN==6
#define NO 3
hidden byte w[6] = {PUT,PUT, PUT,PUT, PUT,PUT}; hidden byte kind[3] = {TX,TX,NATIVE};
#elif SCEN==7          /* plain writes of row 0 alone: insert, delete, insert */
#define NO 3
hidden byte w[6] = {PUT,0, DEL,0, PUT,0};       hidden byte kind[3] = {PLAIN,PLAIN,PLAIN};
#elif SCEN==8          /* one of each: who deletes what the other inserts */
#define NO 2
hidden byte w[6] = {DEL,0, PUT,0, 0,0};         hidden byte kind[3] = {TX,PLAIN,TX};
#elif SCEN==9          /* one of each: two puts */
#define NO 2
hidden byte w[6] = {PUT,0, PUT,0, 0,0};         hidden byte kind[3] = {TX,PLAIN,TX};
#elif SCEN==10         /* plain ones over both rows, one atomic write each: puts */
#define NO 2
hidden byte w[6] = {PUT,PUT, PUT,PUT, 0,0};     hidden byte kind[3] = {PLAIN,PLAIN,TX};
#elif SCEN==11         /* one against a transaction that deletes, row 1 absent or there */
#define NO 2
hidden byte w[6] = {DEL,DEL, PUT,PUT, 0,0};     hidden byte kind[3] = {TX,PLAIN,TX};
#elif SCEN==12         /* … and against a native write of the second row alone */
#define NO 3
hidden byte w[6] = {PUT,0, PUT,PUT, 0,DEL};     hidden byte kind[3] = {PLAIN,PLAIN,NATIVE};
#elif SCEN==13         /* a transaction and a native one, both rows: snapshots must be whole */
#define NO 2
hidden byte w[6] = {PUT,PUT, PUT,PUT, 0,0};     hidden byte kind[3] = {TX,NATIVE,TX};
#endif
#define OP(a,r) w[(a)*NR+(r)]
#define NEW(a,r) (OP(a,r)==PUT -> (a)+1 : 0)
#define SOWN(a) (NO+2+(a))       /* the revision of the tombstone that plain command a lays upon nothing */
#define MOVED(a) (NO+2+NO+(a))   /* the one by which it moves its base on */

/* it: intent of command it-1; wr: plain commands that wrote it; older, solder: ghosts, see lay() */
typedef Row { byte val; byte rev; byte it; bit tomb; byte wr; byte older; byte solder };
Row row[NR];
byte p[NO];
byte seenv[NO*NR], seenr[NO*NR];            /* what the owner read: image and _rev */
byte sent, com, dead;                       /* network; dead: too old to be delivered */
byte sow, sdead;                            /* the same of the tombstones that plain commands lay */
byte aged;                                  /* plain commands sent longer ago than the retention, and nobody knows better */
byte ended;                                 /* plain commands whose owners will not look any more: their ids may go */
byte recognised;                            /* ghost: plain commands found in a row that others had written since */
byte sawC, sawA;                            /* justification of finalise / undo requests */
byte gC, gAck, gTold; byte gval[NR];        /* ghosts: committed...; the committed image */
byte watch[NR];                             /* ghost: images that were committed at some time since the reader began */
hidden byte x;
#ifdef PARTS
byte late, lval[NR], lrev[NR];              /* rows that show as they were, and how */
#define SHOWS(r,v,q) if :: late&B(r) -> v=lval[r]; q=lrev[r] :: else -> v=IMAGE(r); q=row[r].rev fi
#define SHOW(r) late=late&(255-B(r));       /* nobody writes upon what is late without its showing */
#define HIDE(a,r) if :: OP(a,r) -> lval[r]=seenv[(a)*NR+(r)]; lrev[r]=seenr[(a)*NR+(r)]; late=late|B(r) :: skip fi;
#else
#define SHOWS(r,v,q) v=IMAGE(r); q=row[r].rev
#define SHOW(r)
#define HIDE(a,r)
#endif

#ifdef COUNTER         /* mutation: a counter instead of a unique _rev */
#define REV(a,r) (row[r].rev+1)
#else
#define REV(a,r) ((a)+1)
#endif
#define FREEAT(r,q) (row[r].it==0 && row[r].rev==(q))
#ifdef BUILD           /* mutation: build on a committed intent that is not finalised, replacing it */
#define CANPREP(a,r) (OP(a,r) && row[r].rev==seenr[(a)*NR+(r)] && (row[r].it==0 || (row[r].it!=a+1 && p[row[r].it-1]==COMM)))
#define IMAGE(r) ((row[r].it && p[row[r].it-1]==COMM) -> NEW(row[r].it-1,r) : row[r].val)
#else
#define CANPREP(a,r) (OP(a,r) && FREEAT(r,seenr[(a)*NR+(r)]))
#define IMAGE(r) row[r].val
#endif
#ifdef UNDO_ANY        /* mutation: undo does not check whose intent it is */
#define UNDOABLE(a,r) row[r].it
#else
#define UNDOABLE(a,r) (row[r].it==a+1)
#endif

inline check() { d_step {
  x=0;
  do
  :: x<NR ->                                                    /* IMAGE: what resolving shows is what was committed */
     if
     :: row[x].it && (gC & B(row[x].it-1)) -> assert(NEW(row[x].it-1,x)==gval[x])
     :: else -> assert(row[x].val==gval[x])
     fi;
     assert(row[x].val==0 || row[x].val>NO || (gC & B(row[x].val-1)));   /* RAW readers see only committed images */
     watch[x] = (watch[x] -> watch[x] | B(gval[x]) : 0); x++
  :: else -> break
  od; x=0;
  assert((gAck & gC)==gAck);                                    /* ACKED is for ever */
  assert((gTold & gC)==0) } }                                   /* TOLD aborted never commits */

inline lay(a,r) {                                               /* the after image goes into place */
  SHOW(r)
  row[r].rev=REV(a,r); row[r].val=NEW(a,r); row[r].tomb=0; row[r].older=0; row[r].solder=0;
#ifdef FORGETS         /* mutation: the after image takes the ids' place */
  row[r].wr=0;
#endif
  if
  :: kind[a]==PLAIN && r==0 && !(ended&B(a)) -> row[r].wr=row[r].wr|B(a)
  :: else
  fi;
  if
  :: OP(a,r)==DEL ->
#ifdef NOTOMB          /* mutation: a delete deletes */
     row[r].rev=0
#else
     row[r].tomb=1; row[r].older=sent|com; row[r].solder=sow    /* requests sent before the tombstone die before it does */
#endif
#ifdef TOMBFORGETS     /* mutation: a tombstone does not keep the ids */
     ; row[r].wr=0
#endif
  :: else
  fi }
/* the base of every row written is the committed one: HELD, and no LOST update */
inline commit_row(a,r) {
  if
  :: OP(a,r) -> assert(kind[a]!=TX || row[r].it==a+1); assert(row[r].val==gval[r] && seenv[(a)*NR+(r)]==gval[r]);
     gval[r]=NEW(a,r)
  :: else
  fi }
inline do_commit(a) { d_step { assert(!(gC & B(a))); commit_row(a,0); commit_row(a,1); p[a]=COMM; gC=gC|B(a) }; check() }
#ifdef BLIND           /* mutation: a plain write does not look for intents */
#define DIRECT_OK(a) ((!OP(a,0) || row[0].rev==seenr[(a)*NR]) && (!OP(a,1) || row[1].rev==seenr[(a)*NR+1]))
#else
#define DIRECT_OK(a) ((!OP(a,0) || CANPREP(a,0)) && (!OP(a,1) || CANPREP(a,1)) && p[a]==OPEN)
#endif
inline do_direct(a) {                                           /* PLAIN and NATIVE */
  d_step { assert(!(gC & B(a))); commit_row(a,0); commit_row(a,1); gC=gC|B(a);
  if :: kind[a]==NATIVE -> p[a]=COMM :: else fi;
  if :: OP(a,0) -> lay(a,0) :: else fi; if :: OP(a,1) -> lay(a,1) :: else fi; HIDE(a,0) HIDE(a,1) skip };
  check() }

#define FREEOF(r) (row[r].it==0 && row[r].rev==0)
inline do_sow(a) { row[0].rev=SOWN(a); row[0].tomb=1; row[0].older=sent|com; row[0].solder=sow; check() }

proctype owner(byte a) {
  bit r, ok;
  do                                                            /* 1. read (the image in place is committed) */
  :: atomic { OP(a,r) -> SHOWS(r,seenv[a*NR+r],seenr[a*NR+r]); if :: r==0 -> r=1 :: else -> r=0; break fi }
  :: atomic { !OP(a,r) -> if :: r==0 -> r=1 :: else -> r=0; break fi }
  od;
  if
  :: kind[a]==TX ->
     sent=sent|B(a);
     do                                                         /* 2. prepare; a slow owner may send this at any later time */
     :: atomic {
          if
          :: !OP(a,r) || row[r].it==a+1 -> skip
          :: CANPREP(a,r) -> SHOW(r) row[r].it=a+1; dead=dead&(255-B(a)); check()
          :: else -> r=0; goto aborted
          fi;
          if :: r==0 -> r=1 :: else -> r=0; break fi }
     od;
     com=com|B(a);                                              /* 4. commit */
     if
     :: atomic { p[a]==OPEN -> do_commit(a); ok=1 }
     :: ok=0
     fi
  :: kind[a]==PLAIN ->
#ifndef NOSOW          /* mutation: an insert is written upon nothing */
     if
     :: seenr[a*NR]==0 ->
        sow=sow|B(a);                                           /* sent once; a lost answer is followed by another revision */
        if :: atomic { !(sdead&B(a)) && FREEOF(0) -> do_sow(a) } :: skip fi;
        atomic {                                                /* any tombstone will do: it is as absent as what was read */
          if
          :: row[0].it==0 && row[0].tomb -> seenr[a*NR]=row[0].rev; com=com|B(a)
          :: else -> goto aborted
          fi }
     :: else -> com=com|B(a)
     fi;
#else
     com=com|B(a);
#endif
     do                                                         /* sent, and sent again, at any later time */
     :: atomic { dead&B(a) -> dead=dead&(255-B(a)) }
#ifdef RESOW           /* mutation: the tombstone as well */
     :: atomic { sdead&B(a) -> sdead=sdead&(255-B(a)) }
#endif
     :: atomic { DIRECT_OK(a) -> do_direct(a); ok=1; break }
     :: ok=0; break
     od
  :: else ->
     com=com|B(a);
     if
     :: atomic { DIRECT_OK(a) -> do_direct(a); ok=1 }
     :: ok=0
     fi
  fi;
  if :: ok -> atomic { gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop } :: else fi;
  if                                                            /* refused, or the answer got lost */
  :: kind[a]==PLAIN ->
     atomic {                                                   /* it looks, by a request that moves the base on */
       if
#ifdef REVONLY         /* mutation: only the last writer's id is looked at */
       :: row[0].rev==REV(a,0) -> gAck=gAck|B(a); check(); goto stop
#else
       :: row[0].wr&B(a) -> gAck=gAck|B(a); recognised=(row[0].rev!=REV(a,0) -> recognised|B(a) : recognised); check(); goto stop
#endif
       :: else
       fi;
       if
#ifdef STAYS           /* mutation: it only looks */
       :: row[0].rev==seenr[a*NR] -> goto aborted
#else
       :: row[0].rev==seenr[a*NR] -> SHOW(0) row[0].rev=MOVED(a); check(); goto aborted
#endif
       :: row[0].rev!=seenr[a*NR] ->
          if
#ifndef AGED           /* mutation: what is not found was not done, however long ago */
          :: aged&B(a) -> goto stop                             /* nobody will ever know */
#endif
          :: else -> goto aborted
          fi
       fi }
  :: else ->
     atomic {
       if
       :: p[a]==COMM -> gAck=gAck|B(a); sawC=sawC|B(a); check(); goto stop
       :: else -> p[a]=VOID                                     /* fence, read again */
       fi }
  fi;
aborted:
  atomic { gTold=gTold|B(a); sawA=sawA|B(a); check() };
stop: skip;
  d_step { if :: kind[a]==PLAIN -> ended=ended|B(a); row[0].wr=row[0].wr&(255-B(a)) :: else fi }
}

#define CAN(c,what) :: atomic { (c) -> what }
#ifdef GCVOID          /* mutation: the void of an aborted $tx is cleaned away */
#define CLEAN(a) CAN(p[a]==VOID, p[a]=OPEN)
#else
#define CLEAN(a)
#endif
#define PER_ROW(a,r) \
  CAN((sent&B(a)) && !(dead&B(a)) && CANPREP(a,r), SHOW(r) row[r].it=a+1; check()) \
  CAN((sawC&B(a)) && row[r].it==a+1, row[r].it=0; lay(a,r); check()) \
  CAN((sawA&B(a)) && UNDOABLE(a,r), row[r].it=0; check()) \
  CAN(row[r].wr&B(a), AGE(a) row[r].wr=row[r].wr&(255-B(a)))
#ifdef EARLY           /* mutation: an id goes when the row is full */
#define AGE(a)
#else
#define AGE(a) aged=aged|B(a);
#endif
#define ALL(a) CLEAN(a) PER_ROW(a,0) PER_ROW(a,1) \
  CAN((com&B(a)) && kind[a]==TX && p[a]==OPEN, do_commit(a)) \
  CAN((com&B(a)) && kind[a]!=TX && !(dead&B(a)) && DIRECT_OK(a), do_direct(a)) \
  CAN((sow&B(a)) && !(sdead&B(a)) && FREEOF(0), do_sow(a)) \
  CAN((sent&B(a)) && p[a]==OPEN, p[a]=VOID) \
  CAN((sent&B(a)) && p[a]==COMM && !(sawC&B(a)), sawC=sawC|B(a)) \
  CAN((sent&B(a)) && p[a]==VOID && !(sawA&B(a)), sawA=sawA|B(a))
#ifdef TTL             /* mutation: the store's expiry removes the tombstone although an intent has been laid upon it */
#define EXPIRABLE(r) row[r].tomb
#else
#define EXPIRABLE(r) (row[r].tomb && row[r].it==0)
#endif
#ifdef SHORT           /* mutation: the tombstone goes while older requests may still be delivered */
#define DIE(r)
#else
#define DIE(r) dead=dead|row[r].older; sdead=sdead|row[r].solder;
#endif
#define PURGE(r) CAN(EXPIRABLE(r), SHOW(r) row[r].tomb=0; row[r].rev=0; row[r].it=0; row[r].wr=0; DIE(r) \
  aged=aged|row[r].older; row[r].older=0; row[r].solder=0; check())

proctype world() {
end:
  do
  ALL(0)
  ALL(1)
#if NO>2
  ALL(2)
#endif
  PURGE(0)
  PURGE(1)
#ifdef PARTS
  CAN(late&B(0), SHOW(0))
  CAN(late&B(1), SHOW(1))
#endif
  od
}

/* read committed of row r: v its image, q its logical revision (of the transaction, when that has committed) */
inline read(r,v,q) {
#ifdef PARTS
  atomic { if :: late&B(r) -> v=lval[r]; q=lrev[r] :: else -> b=row[r].it; v=row[r].val; q=row[r].rev fi; watch[r]=B(gval[r]) };
#else
  atomic { b=row[r].it; v=row[r].val; q=row[r].rev; watch[r]=B(gval[r]) };
#endif
  if
  :: b ->
     atomic {
       if
       :: p[b-1]==COMM -> v=NEW(b-1,r); q=b
#ifdef DIRTY           /* mutation */
       :: p[b-1]==OPEN -> v=NEW(b-1,r)
#endif
       :: p[b-1]!=COMM
       fi; b=0 }
  :: else
  fi }
#ifdef SNAPSHOT
#ifdef RAWREV          /* "read revisions again" taken as: the _rev in the row */
#define Q(r,q) row[r].rev
#else
#define Q(r,q) q
#endif
proctype reader() {
  byte b, v0, v1, q0, q1, u, q;
end:
  do
  :: read(0,v0,q0); read(1,v1,q1);
#ifdef RAWREV
     read(0,u,q); if :: atomic { row[0].rev!=q0 -> goto again } :: atomic { row[0].rev==q0 } fi;
     if :: atomic { row[1].rev!=q1 -> goto again } :: atomic { row[1].rev==q1 } fi;
#else
     read(0,u,q); if :: atomic { q!=q0 -> goto again } :: atomic { q==q0 -> u=0; q=0 } fi;
     read(1,u,q); if :: atomic { q!=q1 -> goto again } :: atomic { q==q1 -> u=0; q=0 } fi;
#endif
     assert(v0==v1);                                            /* SNAPSHOT: both rows of one moment */
again: atomic { watch[0]=0; watch[1]=0; b=0; v0=0; v1=0; q0=0; q1=0; u=0; q=0 }
  od
}
#else
proctype reader() {
  byte b, v, q; bit r;
end:
  do
  :: if :: row[0].it -> r=0 :: row[1].it -> r=1 fi;
     read(r,v,q);
     atomic { assert(watch[r] & B(v));                          /* READ: linearizable, never dirty, never stale */
       watch[r]=0; v=0; q=0; r=0 }
  od
}
#endif

init { atomic {
#ifdef THERE
  row[0].val=NO+1; row[0].rev=REV(NO,0); row[1].val=NO+1; row[1].rev=REV(NO,1); gval[0]=NO+1; gval[1]=NO+1;
#endif
  run owner(0); run owner(1);
#if NO>2
  run owner(2);
#endif
  run world();
#ifndef NOREADER       /* what readers see of rows does not depend on who wrote them plainly */
  run reader()
#endif
  } }
#ifdef REACH
active proctype reach() { assert(!(REACH)) }
#endif
